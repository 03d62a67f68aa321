//! Where AWS's chain of credentials asks for sessions: the endpoint of ECS containers, the metadata of EC2 instances, and the token
//! service. One address serves all.

mod instance;
mod reply;
mod token_service;

use std::io;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::sessions::{IssuedSession, Sessions};
use crate::origin::Exchange;
use crate::raw::Request;
use crate::relay::read_request;
use instance::InstanceMetadata;
use reply::Reply;
use token_service::TokenService;

/// The path of the endpoint of containers.
pub(super) const CONTAINER_PATH: &str = "/credentials";

/// How the sources answer.
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

/// The sources, and how they answer.
#[derive(Debug, Default)]
pub(super) struct Sources {
    answer: Mutex<CredentialsAnswer>,
    instance: InstanceMetadata,
    token_service: TokenService,
}

/// Credentials as containers and instances get them.
fn document(session: &IssuedSession) -> Value {
    json!({
        "AccessKeyId": session.keys.access,
        "SecretAccessKey": session.keys.secret,
        "Token": session.keys.token,
        "Expiration": session.expires,
    })
}

impl Sources {
    pub(super) fn set_answer(&self, answer: CredentialsAnswer) {
        *self.answer.lock() = answer;
    }

    /// Issues sessions of this role for this token from now on, and for no other.
    pub(super) fn accept_web_identity(&self, role: &str, token: &str) {
        self.token_service.accept(role, token);
    }

    /// Answers a request to one of the sources.
    pub(super) fn answer(&self, exchange: &mut Exchange, sessions: &Sessions) -> io::Result<()> {
        let request = read_request(exchange)?;
        let answer = *self.answer.lock();
        let reply = match answer {
            CredentialsAnswer::Session => self.reply(&request, sessions),
            CredentialsAnswer::Html => {
                let page = "<!DOCTYPE html><title>Log in</title><p>Accept the terms";
                Reply::new("200 OK", "text/html", page)
            }
            CredentialsAnswer::Failure => {
                let document = json!({"code": "InternalServerError", "message": "try again"});
                Reply::new(
                    "500 Internal Server Error",
                    "application/json",
                    document.to_string(),
                )
            }
        };
        reply.send(exchange)
    }

    fn reply(&self, request: &Request, sessions: &Sessions) -> Reply {
        match (request.method.as_str(), request.target.as_str()) {
            ("GET", CONTAINER_PATH) => Reply::json(&document(&sessions.issue())),
            ("POST", "/") => self.token_service.answer(request, sessions),
            (_, target) if target.starts_with("/latest/") => self.instance.answer(request, sessions),
            _ => Reply::not_found(),
        }
    }
}
