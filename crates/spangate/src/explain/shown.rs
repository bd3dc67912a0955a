//! An explanation as text and as JSON.

use std::fmt::Write as _;

use config::reader::Input;
#[cfg(feature = "export")]
use config::secrets;
use proxy::explain::{Explanation, Step};
use serde_json::{Value, json};

/// The limits of every explanation.
const LIMITS: &str = "The rules run as in a process that has just started: tables are empty, and every server has its initial state. \
                      A fact that only a connection has (its certificate, its timing) is unknown and counts as absent.";

/// The limits of every explained response.
const RESPONSE_LIMITS: &str = "The response has a head without a body. Cookies that 'cookie' sets, and fields of error pages, are not shown.";

/// Text for a terminal.
pub(super) fn text(explained: &Explanation, inputs: &[Input]) -> String {
    let mut out = format!(
        "frontend {} ({})\n",
        explained.frontend, explained.frontend_why
    );
    let mut part = (&explained.frontend, false);
    for step in &explained.steps {
        if (&step.proxy, step.is_response) != part {
            part = (&step.proxy, step.is_response);
            let _ = writeln!(out, "\n{}", part_of(step, explained));
        }
        let mark = if step.matches { '+' } else { '-' };
        let place = step.place.as_ref();
        let place = place.map_or_else(String::new, |(file, line)| format!("{file}:{line}  "));
        let line = line_of(step, inputs).unwrap_or(step.keyword);
        let _ = writeln!(out, "  {mark} {place}{line}");
        let _ = write!(out, "      {}", step.result);
        if !step.unknown.is_empty() {
            let _ = write!(out, " (unknown here: {})", step.unknown.join(", "));
        }
        out.push('\n');
    }
    if explained.backend.is_some() && !explained.servers.is_empty() {
        let _ = writeln!(out, "\nservers");
        for (name, address, weight) in &explained.servers {
            let _ = writeln!(out, "  {name}  {address}  weight {weight}");
        }
    }
    if !explained.request.is_empty() {
        let _ = writeln!(out, "\nthe request as it leaves the rules");
    }
    for line in &explained.request {
        let _ = writeln!(out, "  {line}");
    }
    if !explained.response.is_empty() {
        let _ = writeln!(out, "\nthe response that the client gets");
    }
    for line in &explained.response {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "\n{}", explained.outcome);
    if let Some(outcome) = &explained.response_outcome {
        let _ = writeln!(out, "{outcome}\n{RESPONSE_LIMITS}");
    }
    let _ = writeln!(out, "{LIMITS}");
    out
}

/// JSON for programs and for the dashboard.
pub(super) fn json(explained: &Explanation, inputs: &[Input]) -> Value {
    let step = |step: &Step| {
        json!({
            "proxy": step.proxy,
            "message": if step.is_response { "response" } else { "request" },
            "keyword": step.keyword,
            "file": step.place.as_ref().map(|(file, _)| file),
            "line": step.place.as_ref().map(|(_, line)| line),
            "text": line_of(step, inputs),
            "matches": step.matches,
            "result": step.result,
            "unknown": step.unknown,
        })
    };
    let server = |(name, address, weight): &(String, String, u32)| json!({ "name": name, "address": address, "weight": weight });
    json!({
        "frontend": explained.frontend,
        "frontend_why": explained.frontend_why,
        "steps": explained.steps.iter().map(step).collect::<Vec<_>>(),
        "backend": explained.backend,
        "server_choice": explained.server_choice,
        "servers": explained.servers.iter().map(server).collect::<Vec<_>>(),
        "request": explained.request,
        "outcome": explained.outcome,
        "response": explained.response,
        "response_outcome": explained.response_outcome,
        "limits": match explained.response_outcome {
            None => LIMITS.to_owned(),
            Some(_) => format!("{RESPONSE_LIMITS} {LIMITS}"),
        },
    })
}

/// Hides the secrets of the configuration in the JSON of an explanation, for the dashboard.
#[cfg(feature = "export")]
pub(super) fn hide_secrets(explained: &mut Value) {
    let each = |of: &mut Value, hide: &dyn Fn(&str) -> String| {
        if let Value::String(text) = of {
            *text = hide(text);
        }
    };
    for part in ["request", "response"] {
        if let Some(lines) = explained.get_mut(part).and_then(Value::as_array_mut) {
            for line in lines {
                each(line, &secrets::hide_text);
            }
        }
    }
    if let Some(steps) = explained.get_mut("steps").and_then(Value::as_array_mut) {
        for step in steps {
            each(&mut step["text"], &|line| secrets::hide(line).text);
            each(&mut step["result"], &secrets::hide_text);
        }
    }
}

/// The heading of the steps of a proxy.
fn part_of(step: &Step, explained: &Explanation) -> String {
    let is_backend = explained.backend.as_ref() == Some(&step.proxy);
    let kind = if is_backend && step.proxy != explained.frontend {
        "backend"
    } else {
        "frontend"
    };
    if step.is_response {
        format!("response, {kind} {}", step.proxy)
    } else {
        format!("{kind} {}", step.proxy)
    }
}

/// The line of the file that a step executes.
fn line_of<'a>(step: &Step, inputs: &'a [Input]) -> Option<&'a str> {
    let (file, line) = step.place.as_ref()?;
    let input = inputs.iter().find(|input| input.name == *file)?;
    let text = std::str::from_utf8(&input.text).ok()?;
    text.lines().nth(*line as usize - 1).map(str::trim)
}
