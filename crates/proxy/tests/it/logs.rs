//! Every stream is logged exactly once, with the status that its client got.

use super::stage::Stage;

/// Compares the log of a life with what happened.
///
/// # Errors
/// A line too many, too few, or wrong.
pub fn check<'a>(logs: impl Iterator<Item = &'a Vec<u8>>, stage: &Stage<'_>) -> Result<(), String> {
    if !stage.setup.logs_paths {
        return Ok(());
    }
    let lines: Vec<String> = logs
        .map(|line| {
            let line = String::from_utf8_lossy(line);
            // Clients of HTTP/2 and HTTP/3 tell scheme and host of each request.
            let origins = ["http://sim", "https://sim"];
            let path = origins.iter().find_map(|origin| line.strip_prefix(origin));
            path.unwrap_or(&line).to_owned()
        })
        .collect();
    for (client, plan) in stage.plans.iter().enumerate() {
        let mut logged_bytes = 0;
        for exchange in plan {
            let number = exchange.number;
            let start = match exchange.method {
                "CONNECT" => format!("c{client}.n{number}:80 "),
                _ => format!("/{client}/{number} "),
            };
            let of_it: Vec<&String> = lines
                .iter()
                .filter(|line| line.starts_with(&start))
                .collect();
            let (seen, got) = (stage.seen[client][number], stage.got[client][number]);
            if of_it.len() > 1 || (of_it.is_empty() && seen > 0) {
                return Err(format!(
                    "request {client}/{number} was logged {} times",
                    of_it.len()
                ));
            }
            let bytes = of_it
                .first()
                .and_then(|line| line.trim_end().split(' ').nth(3));
            logged_bytes += bytes
                .and_then(|bytes| bytes.parse::<usize>().ok())
                .unwrap_or(0);
            let status = of_it
                .first()
                .and_then(|line| line.split(' ').nth(1))
                .unwrap_or("-");
            let final_status = !stage.setup.logs_early;
            if final_status && got != 0 && !of_it.is_empty() && status != got.to_string() {
                return Err(format!(
                    "request {client}/{number} got {got} and was logged as {status}"
                ));
            }
        }
        // Who reset or was cut has not seen all that was sent to it.
        let bytes = stage.bytes[client];
        // Those of HTTP/2 and HTTP/3 were translated.
        let is_told = !stage.setup.h2_clients && !stage.setup.h3_clients;
        if is_told && stage.mood.calm && !stage.setup.logs_early && logged_bytes != bytes {
            return Err(format!(
                "client {client} got {bytes} bytes, {logged_bytes} were logged"
            ));
        }
    }
    Ok(())
}
