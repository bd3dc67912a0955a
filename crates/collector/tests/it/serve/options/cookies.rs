//! Exporters that send cookies back.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use super::*;

/// A back end that gives each request a number, as balancers do to find their server again; and the
/// cookies that came.
async fn back_end() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    let came = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&came);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let came = Arc::clone(&all);
            let service = service_fn(move |request: Request<Incoming>| {
                let came = Arc::clone(&came);
                async move {
                    let cookie = request.headers().get("cookie");
                    let cookie = cookie.map(|value| value.to_str().expect("text").to_owned());
                    let _ = request.into_body().collect().await;
                    let mut came = came.lock().expect("nobody panics");
                    came.push(cookie.unwrap_or_default());
                    let number = came.len();
                    // One that is not taken says who it was, too.
                    let status = if number == 1 { 503 } else { 200 };
                    let mut response = Response::new(Full::<Bytes>::default());
                    *response.status_mut() = status.try_into().expect("a status");
                    for cookie in [
                        format!("server={number}; Path=/; HttpOnly"),
                        "other=x; Domain=elsewhere.example".to_owned(),
                    ] {
                        let value = cookie.try_into().expect("a value");
                        response.headers_mut().append("set-cookie", value);
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let serve = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(serve);
        }
    });
    (address, came)
}

#[tokio::test]
async fn cookies_are_sent_back_by_those_who_keep_them() {
    for (options, expected) in [
        ("cookies: { enabled: true },", ["", "server=1", "server=2"]),
        (
            "cookies: { enabled: true }, headers: { Cookie: own=1 },",
            ["own=1", "own=1; server=1", "own=1; server=2"],
        ),
        ("cookies: { enabled: false },", ["", "", ""]),
        ("", ["", "", ""]),
    ] {
        let (address, came) = back_end().await;
        let exporter = format!(
            "otlphttp: {{ endpoint: 'http://{address}', {options} sending_queue: {{ enabled: false }}, retry_on_failure: {{ initial_interval: 1ms }} }}"
        );
        let front = sender(&exporter, "otlphttp", "", "");
        let client = grpc(&front);
        for number in 0..2 {
            taken(&client, request(number * 10, 10)).await;
        }
        assert_eq!(*came.lock().expect("nobody panics"), expected, "{options}");
    }
}
