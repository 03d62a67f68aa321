//! Refusals as AWS words them.

use std::io;

use crate::origin::Exchange;
use crate::raw::Request;

/// An answer that does not come from the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    status: &'static str,
    pub(super) code: &'static str,
    message: String,
    /// Further elements of the document.
    elements: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(super) fn new(status: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            elements: Vec::new(),
            headers: Vec::new(),
        }
    }

    pub(super) fn element(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.elements.push((name, text.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The answer to a request that is signed for another region than `expected`.
    pub(super) fn wrong_region(found: &str, expected: &str) -> Self {
        let message = format!(
            "The authorization header is malformed; the region '{found}' is wrong; expecting '{expected}'"
        );
        Self::new("400 Bad Request", "AuthorizationHeaderMalformed", message).element("Region", expected)
    }

    /// The answer to a presigned request that is signed for another region than `expected`.
    pub(super) fn wrong_query_region(found: &str, expected: &str) -> Self {
        let message = format!(
            "Error parsing the X-Amz-Credential parameter; the region '{found}' is wrong; expecting '{expected}'"
        );
        Self::new("400 Bad Request", "AuthorizationQueryParametersError", message).element("Region", expected)
    }

    /// The answer to a request that another host should get.
    pub(super) fn permanent_redirect(bucket: &str, endpoint: impl Into<String>, region: &str) -> Self {
        let message = "The bucket you are attempting to access must be addressed using the specified endpoint. \
                       Please send all future requests to this endpoint.";
        Self::new("301 Moved Permanently", "PermanentRedirect", message)
            .element("Endpoint", endpoint)
            .element("Bucket", bucket)
            .header("x-amz-bucket-region", region)
    }

    /// Sends the answer. If the request has a body, it stays unread, and the connection closes, as at AWS.
    pub(super) fn send(&self, exchange: &mut Exchange, request: &Request) -> io::Result<()> {
        let has_body = request.header_value("transfer-encoding").is_some()
            || request
                .header_value("content-length")
                .is_some_and(|length| length != "0");
        let is_head = request.method == "HEAD";
        let document = self.document();
        let mut answer = format!("HTTP/1.1 {}\r\nContent-Type: application/xml\r\n", self.status);
        for (name, value) in &self.headers {
            answer.extend([*name, ": ", value, "\r\n"]);
        }
        if has_body {
            answer.push_str("Connection: close\r\n");
        }
        if is_head {
            // What a GET would get, without its length.
            answer.push_str("Transfer-Encoding: chunked\r\n\r\n");
        } else {
            answer.extend(["Content-Length: ", &document.len().to_string(), "\r\n\r\n"]);
            answer.push_str(&document);
        }
        exchange.send(answer)?;
        if has_body {
            exchange.close_without_body()
        } else {
            Ok(())
        }
    }

    fn document(&self) -> String {
        let mut document = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
        let elements = [("Code", self.code), ("Message", self.message.as_str())];
        let others = self.elements.iter().map(|(name, text)| (*name, text.as_str()));
        for (name, text) in elements.into_iter().chain(others) {
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            document.extend(["<", name, ">", &text, "</", name, ">"]);
        }
        document + "<RequestId>FRONT0000000001</RequestId><HostId>front</HostId></Error>"
    }
}
