//! The token service, for web identities alone.

use std::collections::HashMap;

use parking_lot::Mutex;
use percent_encoding::percent_decode_str;

use super::reply::Reply;
use crate::aws_front::sessions::{IssuedSession, Sessions};
use crate::raw::Request;

const ACTION: &str = "AssumeRoleWithWebIdentity";
const VERSION: &str = "2011-06-15";
const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// The web identity that gets sessions, if any.
#[derive(Debug, Default)]
pub(super) struct TokenService(Mutex<Option<WebIdentity>>);

#[derive(Debug)]
struct WebIdentity {
    role: String,
    token: String,
}

/// The fields of a form.
fn fields(body: &[u8]) -> HashMap<String, String> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let text = String::from_utf8_lossy(body);
    let pairs = text.split('&').filter_map(|field| field.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

fn refusal(status: &'static str, code: &str, message: &str) -> Reply {
    let document = format!(
        "<ErrorResponse xmlns=\"{NAMESPACE}\"><Error><Type>Sender</Type><Code>{code}</Code>\
         <Message>{message}</Message></Error><RequestId>FRONT0000000001</RequestId></ErrorResponse>"
    );
    Reply::new(status, "text/xml", document)
}

fn answer(session: &IssuedSession, session_name: &str) -> Reply {
    let keys = &session.keys;
    let token = keys.token.as_deref().unwrap_or_default();
    let document = format!(
        "<{ACTION}Response xmlns=\"{NAMESPACE}\"><{ACTION}Result>\
         <SubjectFromWebIdentityToken>system:serviceaccount:default:pushdown</SubjectFromWebIdentityToken>\
         <AssumedRoleUser><AssumedRoleId>AROAFRONT:{session_name}</AssumedRoleId>\
         <Arn>arn:aws:sts::111122223333:assumed-role/pushdown/{session_name}</Arn></AssumedRoleUser>\
         <Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>{}</SecretAccessKey>\
         <SessionToken>{token}</SessionToken><Expiration>{}</Expiration></Credentials></{ACTION}Result>\
         <ResponseMetadata><RequestId>FRONT0000000001</RequestId></ResponseMetadata></{ACTION}Response>",
        keys.access, keys.secret, session.expires
    );
    Reply::new("200 OK", "text/xml", document)
}

impl TokenService {
    /// Issues sessions of this role for this token from now on, and for no other.
    pub(super) fn accept(&self, role: &str, token: &str) {
        *self.0.lock() = Some(WebIdentity {
            role: role.to_owned(),
            token: token.to_owned(),
        });
    }

    pub(super) fn answer(&self, request: &Request, sessions: &Sessions) -> Reply {
        let fields = fields(&request.body);
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        if field("Action") != ACTION || field("Version") != VERSION {
            let message = "Could not find this operation for this version";
            return refusal("400 Bad Request", "InvalidAction", message);
        }
        let session_name = field("RoleSessionName");
        if session_name.is_empty() {
            let message = "1 validation error detected: the session has no name";
            return refusal("400 Bad Request", "ValidationError", message);
        }
        let accepted = self.0.lock();
        let identity = accepted
            .as_ref()
            .filter(|identity| identity.token == field("WebIdentityToken"));
        let Some(identity) = identity else {
            let message = "The web identity token is not valid";
            return refusal("400 Bad Request", "InvalidIdentityToken", message);
        };
        if identity.role != field("RoleArn") {
            let message = format!("Not authorized to perform sts:{ACTION}");
            return refusal("403 Forbidden", "AccessDenied", &message);
        }
        answer(&sessions.issue(), session_name)
    }
}
