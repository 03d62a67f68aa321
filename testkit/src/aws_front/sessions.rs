//! Temporary credentials, and the endpoint that issues them as that of ECS containers does.

use std::io;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, SubsecRound as _, Utc};
use parking_lot::Mutex;
use serde_json::json;

use crate::origin::Exchange;
use crate::sign::Keys;

/// The path of the endpoint.
pub(super) const PATH: &str = "/credentials";

/// How the endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CredentialsAnswer {
    /// With the credentials of a new session.
    #[default]
    Session,
    /// With 200 and a page of HTML, like the login page of a network.
    Html,
    /// With 500.
    Failure,
}

/// All sessions, and how to issue further ones.
#[derive(Debug)]
pub(super) struct Sessions(Mutex<State>);

#[derive(Debug)]
struct State {
    lifetime: Duration,
    answer: CredentialsAnswer,
    sessions: Vec<Session>,
}

#[derive(Debug, Clone)]
struct Session {
    keys: Keys,
    expires: SystemTime,
    validity: Validity,
}

/// Whether a session is accepted until it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Validity {
    Accepted,
    /// Its token is refused.
    Revoked,
    /// Its access key is unknown.
    Forgotten,
}

/// Why a session is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionError {
    /// No such access key.
    Unknown,
    /// Another token than that of the access key, or none.
    InvalidToken,
    /// The session has expired, or is revoked.
    Expired,
}

// === impl Sessions ===

impl Sessions {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self(Mutex::new(State {
            lifetime,
            answer: CredentialsAnswer::default(),
            sessions: Vec::new(),
        }))
    }

    pub(super) fn set_answer(&self, answer: CredentialsAnswer) {
        self.0.lock().answer = answer;
    }

    /// Refuses the tokens of all sessions issued so far.
    pub(super) fn revoke(&self) {
        self.replace_validity(Validity::Revoked);
    }

    /// Forgets the access keys of all sessions issued so far.
    pub(super) fn forget(&self) {
        self.replace_validity(Validity::Forgotten);
    }

    fn replace_validity(&self, validity: Validity) {
        for session in &mut self.0.lock().sessions {
            session.validity = validity;
        }
    }

    /// The credentials of all sessions issued so far.
    pub(super) fn issued(&self) -> Vec<Keys> {
        let state = self.0.lock();
        state
            .sessions
            .iter()
            .map(|session| session.keys.clone())
            .collect()
    }

    /// The credentials that a request with this access key and this token must be signed with.
    pub(super) fn get(&self, access_key: &str, token: Option<&str>) -> Result<Keys, SessionError> {
        let state = self.0.lock();
        let session = state
            .sessions
            .iter()
            .find(|session| session.keys.access == access_key && session.validity != Validity::Forgotten)
            .ok_or(SessionError::Unknown)?;
        if token != session.keys.token.as_deref() {
            return Err(SessionError::InvalidToken);
        }
        if session.validity == Validity::Revoked || session.expires <= SystemTime::now() {
            return Err(SessionError::Expired);
        }
        Ok(session.keys.clone())
    }

    /// Issues a session, and returns the document of its credentials.
    fn issue(&self) -> String {
        let mut state = self.0.lock();
        let number = state.sessions.len();
        let keys = Keys {
            token: Some(format!("IQoJb3JpZ2luX2VjEJr//token+of+session+{number:04}==")),
            ..Keys::new(
                &format!("ASIAFRONTSESSION{number:04}"),
                &format!("secret/of+session/{number:04}"),
            )
        };
        // AWS names whole seconds.
        let expires = DateTime::<Utc>::from(SystemTime::now() + state.lifetime).trunc_subsecs(0);
        let document = json!({
            "AccessKeyId": keys.access,
            "SecretAccessKey": keys.secret,
            "Token": keys.token,
            "Expiration": expires.to_rfc3339_opts(SecondsFormat::Secs, true),
        });
        state.sessions.push(Session {
            keys,
            expires: expires.into(),
            validity: Validity::Accepted,
        });
        document.to_string()
    }

    /// Answers a request of the endpoint.
    pub(super) fn answer(&self, exchange: &mut Exchange) -> io::Result<()> {
        let is_credentials = exchange.head.starts_with(&format!("GET {PATH} "));
        let answer = self.0.lock().answer;
        let (status, kind, body) = match answer {
            _ if !is_credentials => ("404 Not Found", "text/plain", "not found".to_owned()),
            CredentialsAnswer::Session => ("200 OK", "application/json", self.issue()),
            CredentialsAnswer::Html => {
                let page = "<!DOCTYPE html><title>Log in</title><p>Accept the terms";
                ("200 OK", "text/html", page.to_owned())
            }
            CredentialsAnswer::Failure => {
                let document = json!({"code": "InternalServerError", "message": "try again"});
                (
                    "500 Internal Server Error",
                    "application/json",
                    document.to_string(),
                )
            }
        };
        let length = body.len();
        exchange.send(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_needs_its_token_and_its_time() {
        let sessions = Sessions::new(Duration::from_mins(1));
        let document: serde_json::Value = serde_json::from_str(&sessions.issue()).unwrap();
        let expires = document["Expiration"].as_str().unwrap();
        assert!(
            DateTime::parse_from_rfc3339(expires).is_ok() && expires.ends_with('Z'),
            "{expires}"
        );
        let (access, token) = (
            document["AccessKeyId"].as_str().unwrap(),
            document["Token"].as_str(),
        );
        let keys = sessions.get(access, token).unwrap();
        assert_eq!(keys.secret, document["SecretAccessKey"]);
        assert_eq!(sessions.get("another", token).unwrap_err(), SessionError::Unknown);
        for other in [None, Some("another")] {
            assert_eq!(
                sessions.get(access, other).unwrap_err(),
                SessionError::InvalidToken
            );
        }
        sessions.revoke();
        assert_eq!(sessions.get(access, token).unwrap_err(), SessionError::Expired);
        sessions.forget();
        assert_eq!(sessions.get(access, token).unwrap_err(), SessionError::Unknown);
        let keys = |number: usize| sessions.issued()[number].access.clone();
        sessions.issue();
        assert_ne!(keys(0), keys(1));
    }

    #[test]
    fn a_session_expires() {
        let sessions = Sessions::new(Duration::ZERO);
        sessions.issue();
        let keys = sessions.issued().remove(0);
        let found = sessions.get(&keys.access, keys.token.as_deref());
        assert_eq!(found.unwrap_err(), SessionError::Expired);
    }
}
