//! Roles of a store, and their sessions, by IAM and STS of the store.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pushdown_testkit::{BUCKET, Keys, Payload, RealStore, Request, Response};
use serde_json::{Value, json};

/// A role that the owner of a store may assume. It has no right until it is granted one.
#[derive(Debug)]
pub(in crate::it) struct Role {
    name: String,
    arn: String,
}

impl Role {
    pub(in crate::it) fn create(store: &RealStore, name: &str) -> Result<Self> {
        let user = format!("arn:aws:iam:::user/{}", store.owner.access);
        let trust = policy(json!({ "Principal": { "AWS": [user] }, "Action": ["sts:AssumeRole"] }));
        let parameters = [("RoleName", name), ("AssumeRolePolicyDocument", trust.as_str())];
        let created = call(store, "CreateRole", &parameters)?;
        Ok(Self {
            name: name.to_owned(),
            arn: created.element("Arn").context("the role has no Arn")?,
        })
    }

    /// Grants the role these actions on the bucket and its objects.
    pub(in crate::it) fn grant(&self, store: &RealStore, actions: &[&str]) -> Result<()> {
        let resources = ["", "/*"].map(|path| format!("arn:aws:s3:::{BUCKET}{path}"));
        let rights = policy(json!({ "Action": actions, "Resource": resources }));
        let parameters = [
            ("RoleName", self.name.as_str()),
            ("PolicyName", "rights"),
            ("PolicyDocument", &rights),
        ];
        call(store, "PutRolePolicy", &parameters).map(drop)
    }

    /// Withdraws what [`grant`](Self::grant) has granted.
    pub(in crate::it) fn withdraw(&self, store: &RealStore) -> Result<()> {
        let parameters = [("RoleName", self.name.as_str()), ("PolicyName", "rights")];
        call(store, "DeleteRolePolicy", &parameters).map(drop)
    }

    /// Credentials of a session that ends after `seconds`.
    pub(in crate::it) fn assume(&self, store: &RealStore, seconds: u64) -> Result<Keys> {
        let seconds = seconds.to_string();
        let parameters = [
            ("RoleArn", self.arn.as_str()),
            ("RoleSessionName", "tests"),
            ("DurationSeconds", &seconds),
        ];
        let answer = call(store, "AssumeRole", &parameters)?;
        let text = |name: &str| answer.element(name).with_context(|| format!("no {name}"));
        Ok(Keys {
            token: Some(text("SessionToken")?),
            ..Keys::new(&text("AccessKeyId")?, &text("SecretAccessKey")?)
        })
    }
}

/// Sends an action of IAM or STS to the store.
fn call(store: &RealStore, action: &str, parameters: &[(&str, &str)]) -> Result<Response> {
    let address = store.address()?;
    let mut target = format!("/?Action={action}");
    for (name, value) in parameters {
        write!(target, "&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))?;
    }
    let request = Request::new("POST", &target)
        .header("Host", &address.to_string())
        .body("");
    let answer = store.owner.sign(request, Payload::Signed)?.send(address)?;
    ensure!(
        answer.status == 200,
        "{action}: {} {}",
        answer.status,
        answer.text()
    );
    Ok(answer)
}

/// A policy with one statement, which allows. Without spaces, which Ceph does not decode.
fn policy(mut statement: Value) -> String {
    statement["Effect"] = "Allow".into();
    json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string()
}
