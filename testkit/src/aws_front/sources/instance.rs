//! The metadata of EC2 instances, version 2 alone: a PUT issues a token, and every GET needs one.

use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use parking_lot::Mutex;

use super::document;
use super::reply::Reply;
use crate::aws_front::sessions::Sessions;
use crate::raw::Request;

const TOKEN_TARGET: &str = "/latest/api/token";
/// Has the names of the instance's roles, of which there is one, and below it their credentials.
const ROLES_TARGET: &str = "/latest/meta-data/iam/security-credentials/";
const ROLE: &str = "pushdown-gateway";
/// The header with the life of a token.
const TTL_SECONDS: &str = "x-aws-ec2-metadata-token-ttl-seconds";
const MAX_TTL_SECONDS: u64 = 21_600;
const TOKEN: &str = "x-aws-ec2-metadata-token";

/// The tokens issued so far.
#[derive(Debug, Default)]
pub(super) struct InstanceMetadata(Mutex<Vec<Token>>);

#[derive(Debug)]
struct Token {
    text: String,
    end: Instant,
}

impl InstanceMetadata {
    pub(super) fn answer(&self, request: &Request, sessions: &Sessions) -> Reply {
        if request.method == "PUT" && request.target == TOKEN_TARGET {
            return self.issue_token(request);
        }
        if !self.has_token(request) {
            return Reply::new("401 Unauthorized", "text/plain", "Unauthorized");
        }
        match (request.method.as_str(), request.target.strip_prefix(ROLES_TARGET)) {
            ("GET", Some("")) => Reply::new("200 OK", "text/plain", ROLE),
            ("GET", Some(ROLE)) => {
                let mut document = document(&sessions.issue());
                document["Code"] = "Success".into();
                document["Type"] = "AWS-HMAC".into();
                document["LastUpdated"] = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true).into();
                Reply::json(&document)
            }
            _ => Reply::not_found(),
        }
    }

    fn issue_token(&self, request: &Request) -> Reply {
        let seconds = request
            .header_value(TTL_SECONDS)
            .and_then(|seconds| seconds.parse::<u64>().ok())
            .filter(|seconds| (1..=MAX_TTL_SECONDS).contains(seconds));
        let Some(seconds) = seconds else {
            return Reply::new("400 Bad Request", "text/plain", "Bad Request");
        };
        let mut tokens = self.0.lock();
        let text = format!("AQAEAFRONT-token-of-instance-{:04}==", tokens.len());
        tokens.push(Token {
            text: text.clone(),
            end: Instant::now() + Duration::from_secs(seconds),
        });
        Reply::new("200 OK", "text/plain", text).header(TTL_SECONDS, seconds.to_string())
    }

    /// Whether a request has a token that has not ended.
    fn has_token(&self, request: &Request) -> bool {
        let now = Instant::now();
        request.header_value(TOKEN).is_some_and(|sent| {
            let tokens = self.0.lock();
            tokens.iter().any(|token| token.text == sent && now < token.end)
        })
    }
}
