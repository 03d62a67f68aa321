//! Answers of the sources.

use std::io;

use serde_json::Value;

use crate::origin::Exchange;

/// A complete answer.
#[derive(Debug)]
pub(super) struct Reply {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Reply {
    pub(super) fn new(status: &'static str, content_type: &str, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", content_type.to_owned())],
            body: body.into(),
        }
    }

    pub(super) fn json(document: &Value) -> Self {
        Self::new("200 OK", "application/json", document.to_string())
    }

    pub(super) fn not_found() -> Self {
        Self::new("404 Not Found", "text/plain", "not found")
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn send(&self, exchange: &mut Exchange) -> io::Result<()> {
        let mut answer = format!("HTTP/1.1 {}\r\n", self.status);
        for (name, value) in &self.headers {
            answer.extend([*name, ": ", value, "\r\n"]);
        }
        answer.extend(["Content-Length: ", &self.body.len().to_string(), "\r\n\r\n"]);
        answer.push_str(&self.body);
        exchange.send(answer)
    }
}
