use serde_json::json;

use super::*;
use crate::workdir::Workdir;

fn findings() -> Findings {
    Findings {
        name: "routing",
        title: "Routing <by> Host",
        published: "33.6 k & 28.4 k",
        method: vec!["wrk, closed loop.".into()],
        machine: Machine {
            processor: "CPU".into(),
            cores: 2,
            memory_mib: 7936,
            system: "Debian, Linux 6".into(),
            load: "0.07".into(),
        },
        versions: vec![("nginx".into(), "nginx version: 1".into())],
        begun: Duration::from_secs(1_700_000_000),
        took: Duration::from_secs(61),
        notes: vec!["envoy: skipped: it does not start".into()],
        tables: vec![Table {
            title: "Requests".into(),
            columns: vec!["proxy", "requests/s", "CPU us"],
            rows: vec![
                vec![
                    "spangate".into(),
                    Cell::Number(65_371.4, 0),
                    Cell::Number(13.704, 2),
                ],
                vec!["<direct>".into(), Cell::Number(912.0, 0), Cell::None],
            ],
        }],
        plots: vec![
            Plot {
                title: "CPU".into(),
                x: Axis::new("", Scale::Names(vec!["spangate".into(), "nginx".into()])),
                y: Axis::new("CPU us", Scale::Linear),
                series: vec![Series {
                    name: "CPU".into(),
                    points: vec![(0.0, 13.7), (1.0, 16.4)],
                }],
            },
            Plot {
                title: "p95".into(),
                x: Axis::new("requests/s", Scale::Log),
                y: Axis::new("ms", Scale::Log),
                series: vec![Series {
                    name: "nginx".into(),
                    points: vec![(500.0, 0.3), (1000.0, 0.0), (2000.0, 4.0)],
                }],
            },
        ],
        runs: json!([{ "requests": 1 }]),
    }
}

#[test]
fn text_has_aligned_columns_and_says_where_and_when() {
    let text = findings().text();
    let lines: Vec<&str> = text.lines().collect();
    let head = lines
        .iter()
        .position(|line| line.starts_with("proxy"))
        .unwrap();
    assert_eq!(
        lines[head..head + 3],
        [
            "proxy     requests/s  CPU us",
            "spangate      65,371   13.70",
            "<direct>         912       -",
        ]
    );
    for words in [
        "Note: envoy: skipped: it does not start",
        "Method: wrk, closed loop.",
        "2023-11-14T22:13:20Z, 61 s. CPU, 2 cores, 7936 MiB; Debian, Linux 6; load average 0.07 at the start.",
        "nginx: nginx version: 1",
    ] {
        assert!(lines.contains(&words), "{text}");
    }
}

#[test]
fn paragraphs_are_broken_at_words() {
    let long = Findings {
        method: vec!["word ".repeat(50)],
        ..findings()
    };
    let text = long.text();
    let lines = text.lines().filter(|line| line.contains("word"));
    let widths: Vec<usize> = lines.map(|line| line.chars().count()).collect();
    assert!(
        widths.len() == 3 && widths.iter().all(|width| *width <= 100),
        "{text}"
    );
}

#[test]
fn json_has_the_figures_as_they_were_measured() {
    let value: Value = serde_json::from_str(&findings().json()).unwrap();
    assert_eq!(
        value["tables"][0]["rows"][0],
        json!(["spangate", 65_371.4, 13.704])
    );
    assert_eq!(value["tables"][0]["rows"][1][2], Value::Null);
    assert_eq!(
        value["plots"][1]["series"][0]["points"][2],
        json!([2000.0, 4.0])
    );
    assert_eq!(value["runs"][0]["requests"], 1);
    assert_eq!(
        (&value["begun"], &value["seconds"]),
        (&json!("2023-11-14T22:13:20Z"), &json!(61))
    );
}

#[test]
fn bars_and_lines_lie_in_the_area() {
    let [bars, lines] = &findings().plots[..] else {
        panic!()
    };
    let svg = bars.svg();
    let numbers = |svg: &str, name: &str| -> Vec<f64> {
        let before = format!(" {name}=\"");
        let found = svg.split(&before).skip(1);
        found
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect()
    };
    let heights = numbers(&svg, "height");
    // The background, the two bars, the legend.
    assert_eq!(heights.len(), 4, "{svg}");
    assert!(
        (heights[1] / heights[2] - 13.7 / 16.4).abs() < 0.01,
        "{heights:?}"
    );
    let svg = lines.svg();
    let (across, up) = (numbers(&svg, "cx"), numbers(&svg, "cy"));
    // A value of 0 cannot be placed on a logarithmic scale.
    assert_eq!((across.len(), up.len()), (2, 2), "{svg}");
    assert!(across[0] < across[1] && up[0] > up[1], "{svg}");
    assert!(
        across.iter().all(|x| (72.0..=570.0).contains(x))
            && up.iter().all(|y| (14.0..=326.0).contains(y))
    );
}

#[test]
fn a_plot_of_nothing_is_whole() {
    for scale in [Scale::Linear, Scale::Log, Scale::Names(Vec::new())] {
        let plot = Plot {
            title: "nothing".into(),
            x: Axis::new("x", scale.clone()),
            y: Axis::new("y", Scale::Log),
            series: vec![Series {
                name: "a".into(),
                points: vec![(f64::NAN, 1.0), (0.0, f64::INFINITY)],
            }],
        };
        let svg = plot.svg();
        assert!(
            svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"),
            "{svg}"
        );
    }
}

#[test]
fn the_page_has_what_ran_before_and_nothing_from_elsewhere() {
    let dir = Workdir::new("report-test").unwrap();
    let page = folder::write(&findings(), dir.path()).unwrap();
    let other = Findings {
        name: "variables",
        title: "Variables",
        ..findings()
    };
    folder::write(&other, dir.path()).unwrap();
    let text = std::fs::read_to_string(page).unwrap();
    // The order is that of the experiments, not of the runs.
    let place = |words: &str| text.find(words).unwrap();
    assert!(place("<section id=\"variables\"") < place("<section id=\"routing\""));
    assert!(text.contains("Routing &lt;by&gt; Host") && text.contains("&lt;direct&gt;"));
    assert_eq!(text.matches("<svg").count(), 4);
    for outside in ["src=", "url(", "@import", "<script", "<link", "https:"] {
        assert!(!text.contains(outside), "{outside}");
    }
    for file in [
        "routing.txt",
        "routing.json",
        "routing-1.svg",
        "routing-2.svg",
        "variables.txt",
    ] {
        assert!(dir.path().join(file).is_file(), "{file}");
    }
}

#[test]
fn thousands_are_set_apart() {
    let shown = [
        (12.0, 0),
        (1234.0, 0),
        (12345.678, 1),
        (-1_234_567.0, 0),
        (0.5, 2),
    ]
    .map(|(value, decimals)| number(value, decimals));
    assert_eq!(shown, ["12", "1234", "12,345.7", "-1,234,567", "0.50"]);
}

#[test]
fn options_of_an_experiment_win_over_quick() {
    let parse = |words: &[&str]| {
        let parser = lexopt::Parser::from_args(words.iter().copied());
        Options::parse(
            parser,
            60,
            |seconds| *seconds = 2,
            |seconds, name, parser| {
                if name == "seconds" {
                    *seconds = options::value(parser)?;
                }
                Ok(name == "seconds")
            },
        )
    };
    let (options, seconds) = parse(&["--seconds", "7", "--quick", "--report", "x"]).unwrap();
    assert_eq!(
        (options.quick, seconds, options.report.to_str()),
        (true, 7, Some("x"))
    );
    assert_eq!(parse(&["--quick"]).unwrap().1, 2);
    assert_eq!(parse(&[]).unwrap().1, 60);
    assert!(
        parse(&["--other"]).is_err()
            && parse(&["x"]).is_err()
            && parse(&["--seconds", "x"]).is_err()
    );
}
