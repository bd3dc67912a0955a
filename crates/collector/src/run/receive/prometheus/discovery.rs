//! Lists of targets, in files and from servers (Prometheus' documentation, `file_sd_config` and
//! `http_sd_config`).

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use export::get::Getter;
use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value as Json;
use syntax::yaml::{self, Node, Rules, Value};
use tokio::time::timeout;

use super::fetch;
use crate::config::components::receivers::prometheus::discovery::{HttpSd, TargetGroup};

/// Bytes of a list.
const LIST_BYTES_MAX: usize = 8 << 20;
/// Levels of a list that is read.
const DEPTH_MAX: usize = 16;
/// Files that a pattern names.
const FILES_MAX: usize = 1000;
/// Time until a list is there.
const LIST_TIME_MAX: Duration = Duration::from_secs(30);

/// The targets of all files. May block.
///
/// # Errors
/// The first file that cannot be read.
pub(super) fn of_files(patterns: &[String]) -> Result<Vec<TargetGroup>, String> {
    let mut groups = Vec::new();
    for path in patterns.iter().flat_map(|pattern| matching(pattern)) {
        let shown = path.display().to_string();
        let text = read(&path).map_err(|why| format!("{shown}: {why}"))?;
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let found = if is_json {
            of_json(&text)
        } else {
            of_yaml(&text)
        };
        let mut found = found.map_err(|why| format!("{shown}: {why}"))?;
        let meta = ("__meta_filepath".to_owned(), shown);
        found
            .iter_mut()
            .for_each(|group| group.labels.push(meta.clone()));
        groups.append(&mut found);
    }
    Ok(groups)
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file
        .take(LIST_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() > LIST_BYTES_MAX {
        return Err(format!("it has more than {LIST_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// The files of a pattern, which may have a `*` in its last part.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let path = Path::new(pattern);
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    let Some((before, after)) = name.split_once('*') else {
        return vec![path.to_owned()];
    };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let entries = fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let rest = name.and_then(|name| name.strip_prefix(before));
            rest.is_some_and(|rest| rest.ends_with(after))
        })
        .take(FILES_MAX)
        .collect();
    paths.sort();
    paths
}

fn of_json(text: &str) -> Result<Vec<TargetGroup>, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = json.as_array().ok_or("it is no list of groups")?;
    let groups = list.iter().map(|group| {
        let targets = group["targets"]
            .as_array()
            .ok_or("a group has no targets")?;
        let targets = targets
            .iter()
            .map(|target| target.as_str().map(str::to_owned));
        let labels = group["labels"].as_object().into_iter().flatten();
        let labels = labels.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Ok(TargetGroup {
            targets: targets
                .collect::<Option<_>>()
                .ok_or("a target is no text")?,
            labels: labels.collect::<Option<_>>().ok_or("a label is no text")?,
        })
    });
    groups.collect()
}

fn of_yaml(text: &str) -> Result<Vec<TargetGroup>, String> {
    let rules = Rules {
        bytes_max: LIST_BYTES_MAX,
        depth_max: DEPTH_MAX,
        empty_is_absent: false,
    };
    let mut errors = Vec::new();
    let document = yaml::parse(text, &rules, &mut errors);
    if let Some(error) = errors.first() {
        return Err(format!("line {}: {}", error.at.line, error.message));
    }
    let root = document.ok_or("it is no YAML")?.root;
    let groups = items(&root)
        .ok_or("it is no list of groups")?
        .iter()
        .map(|group| {
            let targets = group.get("targets").and_then(|node| items(node));
            let targets = targets.ok_or("a group has no targets")?.iter();
            let targets = targets.map(|target| scalar(target));
            let labels = group.get("labels").map_or(&[][..], |node| node.entries());
            let labels = labels.iter();
            let labels = labels.map(|(name, value)| Some((name.text.clone(), scalar(value)?)));
            Ok(TargetGroup {
                targets: targets
                    .collect::<Option<_>>()
                    .ok_or("a target is no text")?,
                labels: labels.collect::<Option<_>>().ok_or("a label is no text")?,
            })
        });
    groups.collect()
}

fn items(node: &Node) -> Option<&[Rc<Node>]> {
    match &node.value {
        Value::List(items) => Some(items),
        _ => None,
    }
}

fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// The targets that a server lists.
///
/// # Errors
/// Why there is no list.
pub(super) async fn of_server(
    getter: &Getter,
    settings: &HttpSd,
) -> Result<Vec<TargetGroup>, String> {
    let asked = async {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let seconds = settings.refresh_interval_ns.div_ceil(1_000_000_000);
        let name = HeaderName::from_static("x-prometheus-refresh-interval-seconds");
        headers.insert(name, HeaderValue::from(seconds));
        fetch::authorize(&settings.client.credentials, &mut headers).await?;
        let answer = getter.get(&settings.url, headers).await;
        let answer = answer.map_err(|why| fetch::reason(&why))?;
        answer.whole(LIST_BYTES_MAX).await
    };
    let body = timeout(LIST_TIME_MAX, asked).await;
    let body = body.map_err(|_| format!("{}: no answer in time", settings.url))??;
    let text = std::str::from_utf8(&body).map_err(|error| error.to_string())?;
    let mut groups = of_json(text)?;
    let meta = ("__meta_url".to_owned(), settings.url.clone());
    groups
        .iter_mut()
        .for_each(|group| group.labels.push(meta.clone()));
    Ok(groups)
}
