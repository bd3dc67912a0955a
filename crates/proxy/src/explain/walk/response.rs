//! Follows a response through its rules: the assumed response of the server, or the proxy's own.

use config::model::Reply;
use http::h1::{self, Strictness};
use sample::BodyFacts;
use telemetry::program::Direction;

use super::{Ended, Walk, lines};
use crate::rules::RuleSet;
use crate::rules::answers::put_fields;
use crate::rules::status::begin_response;
use crate::stream::{Phase, Rules};

impl Walk<'_> {
    /// Follows the assumed response; if the request is not sent to a server, the proxy's own
    /// response.
    ///
    /// # Errors
    /// The frontend does not speak HTTP, or the head is invalid.
    pub(super) fn follow_response(&mut self, head: &[u8], is_sent: bool) -> Result<(), String> {
        if !self.stream.txn.is_http {
            let name = &self.told.frontend;
            return Err(format!(
                "frontend '{name}' is not in mode http: no response is read"
            ));
        }
        let request_outcome = std::mem::take(&mut self.told.outcome);
        self.is_response = true;
        let ended = if is_sent {
            self.read_response(head)?;
            self.response_rules().is_err()
        } else {
            self.told.outcome = "The assumed response is not read.".to_owned();
            true
        };
        if !ended || self.is_answered {
            self.after_response();
        }
        let outcome = std::mem::replace(&mut self.told.outcome, request_outcome);
        self.told.response_outcome = Some(outcome);
        Ok(())
    }

    /// Runs `http-after-response`, and reports the head that the client gets.
    fn after_response(&mut self) {
        self.stream.phase = Phase::SendResponse;
        self.start_response_variables();
        let before = std::mem::take(&mut self.told.outcome);
        let set = (RuleSet::AfterResponse, "http-after-response");
        if self.for_both(set).is_ok() {
            let status = self.stream.response.status();
            self.told.outcome = match &*before {
                "" => format!("The client gets the server's response, with status {status}."),
                before => format!("{before} The client gets status {status}."),
            };
        }
        let head = &self.stream.response;
        let status = head.status().to_string();
        let first = [head.version_bytes(), status.as_bytes(), head.reason()];
        self.told.response = lines(&first.join(&b' '), head);
    }

    /// Runs `tcp-response content`, then `http-response`.
    fn response_rules(&mut self) -> Result<(), Ended> {
        self.content_rules(self.stream.backend, Direction::Response)?;
        self.for_both((RuleSet::Response, "http-response"))
    }

    /// Runs a set of the backend, then of the frontend.
    fn for_both(&mut self, (set, keyword): (RuleSet, &'static str)) -> Result<(), Ended> {
        let (backend, frontend) = (self.stream.backend, self.stream.frontend);
        self.rule_set(backend, keyword, set)?;
        if backend == frontend {
            Ok(())
        } else {
            self.rule_set(frontend, keyword, set)
        }
    }

    /// Parses the assumed response, as if it came from the server.
    fn read_response(&mut self, head: &[u8]) -> Result<(), String> {
        let stream = &mut self.stream;
        let (limits, method) = (self.runtime_config.limits(), stream.txn.method);
        let response = &mut stream.response;
        let parsed = h1::parse_response(head, method, limits, Strictness::Strict, response)
            .map_err(|error| format!("this is no response: {error:?}"))?
            .ok_or("this is no whole response")?;
        let status = response.status();
        if status < 200 {
            return Err(format!(
                "status {status} is not final: response rules run for 200 and above"
            ));
        }
        stream.capture_response_fields(self.runtime_config.proxy(stream.frontend));
        (stream.txn.status, stream.txn.server_status) = (status, status);
        stream.txn.response_body = BodyFacts {
            framing: parsed.framing,
            is_whole: true,
            ..BodyFacts::default()
        };
        if let Some(server) = stream.route.target {
            stream.txn.server = Some(server.number());
        }
        stream.phase = Phase::BackendResponse(Rules::default());
        self.start_response_variables();
        Ok(())
    }

    /// The variables of scope `req` end, and those of `res` begin.
    fn start_response_variables(&mut self) {
        if !std::mem::replace(&mut self.stream.txn.responding, true) {
            self.with_rules(|cx, stream| cx.scene.eval.end_request_vars(stream));
        }
    }

    /// The proxy answers with its page for a status. The page's own fields are not known here.
    pub(super) fn answer_with(&mut self, status: u16) {
        begin_response(&mut self.stream.response, status);
        self.stream.txn.status = status;
        self.is_answered = true;
    }

    /// The proxy answers as a rule says.
    pub(super) fn answer_as(&mut self, reply: &Reply) {
        let mut response = http::Head::default();
        begin_response(&mut response, reply.status);
        self.with_rules(|cx, stream| put_fields(&mut cx.scene.eval, stream, reply, &mut response));
        self.stream.response = response;
        self.stream.txn.status = reply.status;
        self.is_answered = true;
    }
}
