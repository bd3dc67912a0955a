//! The answers of a demo origin, and their delay: by the path, the parameters of the query, and a
//! random part.

use std::time::Duration;

use super::random::Random;

/// The longest delay that a request may ask for.
const LATENCY_MAX: Duration = Duration::from_secs(20);
/// The shares of slow and of failed answers, chosen at random.
const SLOW_SHARE: f64 = 0.01;
const FAILED_SHARE: f64 = 0.01;

/// By the beginning of the path: the route, and the usual response time in milliseconds.
const ROUTES: &[(&str, &str, f64)] = &[
    ("/products/", "/products/{id}", 12.0),
    ("/products", "/products", 20.0),
    ("/search", "/search", 45.0),
    ("/cart", "/cart", 8.0),
    ("/checkout", "/checkout", 70.0),
    ("/slow", "/slow", 1_200.0),
    ("/error", "/error", 5.0),
    ("/health", "/health", 0.0),
];

/// A demo origin.
pub struct Site {
    /// Its displayed name.
    pub name: &'static str,
    slowness: f64,
}

/// The planned answer to a request.
pub struct Plan {
    pub route: &'static str,
    pub latency: Duration,
    pub status: u16,
}

impl Site {
    /// `slowness`: the factor of its response times.
    pub fn new(name: &'static str, slowness: f64) -> Site {
        Site { name, slowness }
    }

    /// Plans the answer for this target. `?latency=` (milliseconds) and `?status=` fix the result.
    pub fn plan(&self, target: &str, random: &mut Random) -> Plan {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let found = ROUTES.iter().find(|(begin, ..)| path.starts_with(begin));
        let (route, usual_ms) = found.map_or(("/", 5.0), |(_, route, ms)| (*route, *ms));
        let asked = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
        };
        let mut latency_ms = match route {
            "/slow" | "/health" => usual_ms,
            _ => usual_ms * (0.4 + random.exponential(0.6)) * self.slowness,
        };
        let mut status = match route {
            "/error" => 500,
            _ => 200,
        };
        if route != "/health" {
            if random.share() < SLOW_SHARE {
                latency_ms += 600.0 + random.exponential(400.0);
            }
            if random.share() < FAILED_SHARE {
                status = 500;
            }
        }
        if let Some(ms) = asked("latency").and_then(|text| text.trim_end_matches("ms").parse().ok())
        {
            (latency_ms, status) = (f64::max(ms, 0.0), 200);
        }
        if let Some(wanted) = asked("status").and_then(|text| text.parse().ok())
            && (200..600).contains(&wanted)
        {
            status = wanted;
        }
        let latency = Duration::try_from_secs_f64(latency_ms / 1e3).unwrap_or(LATENCY_MAX);
        Plan {
            route,
            latency: latency.min(LATENCY_MAX),
            status,
        }
    }

    /// The answer to a request with this head.
    pub fn answer(&self, head: &str, plan: &Plan) -> Vec<u8> {
        let plain = plan.route == "/health" || !head.to_ascii_lowercase().contains("text/html");
        let (kind, body) = if plain {
            (
                "text/plain",
                format!("origin {} · {}\n", self.name, plan.status),
            )
        } else {
            ("text/html", self.html(head.trim_end()))
        };
        let shown = if head.starts_with("HEAD ") {
            ""
        } else {
            &*body
        };
        let status = plan.status;
        // These have no body (RFC 9110 §15).
        let (length, shown) = match status {
            204 | 304 => (String::new(), ""),
            _ => (format!("content-length: {}\r\n", body.len()), shown),
        };
        let name = self.name;
        let answer = format!(
            "HTTP/1.1 {status} Demo\r\ncontent-type: {kind}; charset=utf-8\r\nx-origin: {name}\r\n{length}\r\n{shown}"
        );
        answer.into_bytes()
    }

    fn html(&self, head: &str) -> String {
        let name = self.name;
        let head = head.replace('&', "&amp;").replace('<', "&lt;");
        let links = [
            "/",
            "/products",
            "/products/42",
            "/search?q=tea",
            "/cart",
            "/checkout",
            "/slow",
            "/error",
            "/?latency=250",
            "/?status=503",
        ];
        let links = links
            .map(|path| format!("<a href=\"{path}\">{path}</a>"))
            .join(" · ");
        format!(
            "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Spangate demo: origin {name}</title>\n\
             <style>:root{{color-scheme:light dark}}body{{font-family:system-ui;max-width:50em;margin:3em auto;padding:0 1em}}pre{{background:#8882;padding:1em;overflow:auto}}</style>\n\
             <h1>Origin {name} answered</h1>\n<p>The request as it came through Spangate:</p>\n<pre>{head}</pre>\n<p>{links}</p></html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(target: &str) -> Plan {
        Site::new("A", 1.0).plan(target, &mut Random::new())
    }

    #[test]
    fn a_query_decides() {
        for _ in 0..500 {
            let plan = plan("/cart?latency=250&x=1");
            assert_eq!((plan.route, plan.status), ("/cart", 200));
            assert_eq!(plan.latency.as_millis(), 250);
        }
        assert_eq!(plan("/?status=503").status, 503);
        assert_eq!(plan("/products/7").route, "/products/{id}");
        assert_eq!(plan("/nonsense").route, "/");
        assert_eq!(plan("/error").status, 500);
        assert_eq!(plan("/health").latency, Duration::ZERO);
        for odd in [
            "?",
            "/?latency=x",
            "/?latency=-5",
            "/?latency=1e99",
            "/?latency=NaN",
            "/?status=9",
        ] {
            let plan = plan(odd);
            assert!(plan.latency <= LATENCY_MAX && plan.status >= 200, "{odd}");
        }
    }

    #[test]
    fn shows_the_request_without_its_markup() {
        let head = "GET /?<script> HTTP/1.1\r\nhost: a&b\r\naccept: text/html\r\n\r\n";
        let answer = Site::new("A", 1.0).answer(head, &plan("/?status=200"));
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("GET /?&lt;script> HTTP/1.1") && answer.contains("a&amp;b"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.ends_with(&format!("content-length: {}", body.len())),
            "{head}"
        );
    }

    #[test]
    fn answers_head_without_a_body() {
        let plan = plan("/?status=200");
        let answer = Site::new("A", 1.0).answer("HEAD / HTTP/1.1\r\n\r\n", &plan);
        assert!(answer.ends_with(b"\r\n\r\n"));
    }
}
