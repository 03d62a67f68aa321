//! Temporary credentials, and what becomes of them.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, SubsecRound as _, Utc};
use parking_lot::Mutex;

use crate::sign::Keys;

/// A session as its source hands it out.
#[derive(Debug, Clone)]
pub struct IssuedSession {
    /// Its credentials.
    pub keys: Keys,
    /// Its end at a whole second, as in RFC 3339.
    pub expires: String,
}

/// All sessions, and how long further ones live.
#[derive(Debug)]
pub(super) struct Sessions {
    lifetime: Duration,
    issued: Mutex<Vec<Session>>,
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

impl Sessions {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            issued: Mutex::default(),
        }
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
        for session in &mut *self.issued.lock() {
            session.validity = validity;
        }
    }

    /// The credentials of all sessions issued so far.
    pub(super) fn issued(&self) -> Vec<Keys> {
        let issued = self.issued.lock();
        issued.iter().map(|session| session.keys.clone()).collect()
    }

    /// The credentials that a request with this access key and this token must be signed with.
    pub(super) fn get(&self, access_key: &str, token: Option<&str>) -> Result<Keys, SessionError> {
        let issued = self.issued.lock();
        let session = issued
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

    /// Issues a session.
    pub(super) fn issue(&self) -> IssuedSession {
        let mut issued = self.issued.lock();
        let number = issued.len();
        let keys = Keys {
            token: Some(format!("IQoJb3JpZ2luX2VjEJr//token+of+session+{number:04}==")),
            ..Keys::new(
                &format!("ASIAFRONTSESSION{number:04}"),
                &format!("secret/of+session/{number:04}"),
            )
        };
        // AWS names whole seconds.
        let expires = DateTime::<Utc>::from(SystemTime::now() + self.lifetime).trunc_subsecs(0);
        issued.push(Session {
            keys: keys.clone(),
            expires: expires.into(),
            validity: Validity::Accepted,
        });
        IssuedSession {
            keys,
            expires: expires.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_needs_its_token_and_its_time() {
        let sessions = Sessions::new(Duration::from_mins(1));
        let session = sessions.issue();
        let expires = session.expires;
        assert!(
            DateTime::parse_from_rfc3339(&expires).is_ok() && expires.ends_with('Z'),
            "{expires}"
        );
        let (access, token) = (session.keys.access.as_str(), session.keys.token.as_deref());
        let keys = sessions.get(access, token).unwrap();
        assert_eq!(keys.secret, session.keys.secret);
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
        let keys = sessions.issue().keys;
        let found = sessions.get(&keys.access, keys.token.as_deref());
        assert_eq!(found.unwrap_err(), SessionError::Expired);
    }
}
