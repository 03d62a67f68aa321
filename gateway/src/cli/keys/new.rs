//! `keys new`: a block for a keys file, with a random access key and a random secret.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Args;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use toml::Value;
use zeroize::Zeroizing;

use crate::access::Keys;

/// Letters and digits of base 32 (RFC 4648), of which access keys of AWS consist.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Random characters of an access key: 90 bits.
const ACCESS_KEY_CHARACTERS: usize = 18;
/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

#[derive(Debug, Args)]
pub(in crate::cli) struct NewArguments {
    /// Tenant that pays for the key's requests [default: the access key]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Signer at the store: gateway, or self for the caller
    #[arg(long, value_name = "WHO", default_value = "gateway")]
    upstream: String,
    /// Bucket of a grant, or * for all
    #[arg(long, value_name = "BUCKET")]
    bucket: Option<String>,
    /// Prefix of the grant, with a slash at its end
    #[arg(long, value_name = "PREFIX", requires = "bucket")]
    prefix: Option<String>,
    /// Actions: list, read, write, delete, versions, admin [default: list,read]
    #[arg(long, value_name = "ACTIONS", requires = "bucket", value_delimiter = ',')]
    allow: Vec<String>,
    /// Allow pipelines on what the grant allows to read
    #[arg(long, requires = "bucket")]
    pipelines: bool,
    /// Models that the key may list, run and download, or * for all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    models: Vec<String>,
}

impl NewArguments {
    /// Prints the block. Fails if a keys file with it would have faults.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let access_key = random_access_key().context("cannot make an access key")?;
        let secret = random_secret().context("cannot make a secret")?;
        let block = Zeroizing::new(self.block(&access_key, &secret));
        Keys::from_text(&block)?;
        io::stdout().lock().write_all(block.as_bytes())?;
        Ok(())
    }

    fn block(&self, access_key: &str, secret: &str) -> String {
        let mut lines = vec![
            "[[key]]".to_owned(),
            format!("access-key = {}", quoted(access_key)),
            format!("secret = {}", quoted(secret)),
            format!("upstream = {}", quoted(&self.upstream)),
        ];
        if let Some(tenant) = &self.tenant {
            lines.push(format!("tenant = {}", quoted(tenant)));
        }
        if !self.models.is_empty() {
            lines.push(format!("models = {}", quoted_list(&self.models)));
        }
        match &self.bucket {
            Some(bucket) => lines.extend(self.grant(bucket)),
            None if self.upstream == "gateway" => {
                lines.push("# Nothing is allowed until the key has a [[key.grant]].".to_owned());
            }
            None => lines.push("# The store must know this key, too.".to_owned()),
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn grant(&self, bucket: &str) -> Vec<String> {
        let default = ["list".to_owned(), "read".to_owned()];
        let allow = if self.allow.is_empty() {
            &default[..]
        } else {
            &self.allow
        };
        let mut lines = vec![
            String::new(),
            "[[key.grant]]".to_owned(),
            format!("bucket = {}", quoted(bucket)),
        ];
        if let Some(prefix) = &self.prefix {
            lines.push(format!("prefix = {}", quoted(prefix)));
        }
        lines.push(format!("allow = {}", quoted_list(allow)));
        if self.pipelines {
            lines.push("pipelines = true".to_owned());
        }
        lines
    }
}

fn random_access_key() -> anyhow::Result<String> {
    let mut bytes = [0_u8; ACCESS_KEY_CHARACTERS];
    OsRng.try_fill_bytes(&mut bytes)?;
    let characters = bytes
        .iter()
        .map(|byte| char::from(BASE32[usize::from(byte % 32)]));
    Ok("PD".chars().chain(characters).collect())
}

fn random_secret() -> anyhow::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new([0_u8; SECRET_BYTES]);
    OsRng.try_fill_bytes(bytes.as_mut_slice())?;
    Ok(Zeroizing::new(hex::encode(bytes.as_slice())))
}

fn quoted(text: &str) -> Value {
    Value::from(text)
}

fn quoted_list(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| quoted(text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Action;

    const ACCESS_KEY: &str = "TESTTRAINER00001";
    const SECRET: &str = "a-secret-of-a-test";

    fn arguments() -> NewArguments {
        NewArguments {
            tenant: None,
            upstream: "gateway".to_owned(),
            bucket: None,
            prefix: None,
            allow: Vec::new(),
            pipelines: false,
            models: Vec::new(),
        }
    }

    #[test]
    fn a_block_with_a_grant() {
        let arguments = NewArguments {
            tenant: Some("the \"vision\" team".to_owned()),
            bucket: Some("photos".to_owned()),
            prefix: Some("2024/".to_owned()),
            pipelines: true,
            models: vec!["resnet50".to_owned(), "clip".to_owned()],
            ..arguments()
        };
        let keys = Keys::from_text(&arguments.block(ACCESS_KEY, SECRET)).unwrap();
        let key = keys.get(ACCESS_KEY).unwrap();
        assert_eq!(key.secrets()[0].as_bytes(), SECRET.as_bytes());
        assert_eq!(key.tenant(), "the \"vision\" team");
        assert!(key.models().contains("clip"));
        let grant = &key.grants().as_slice()[0];
        let actions: Vec<_> = grant.actions().map(Action::as_str).collect();
        assert_eq!((grant.prefix(), actions), ("2024/", vec!["list", "read"]));
        assert!(grant.allows_pipelines());
    }

    #[test]
    fn a_block_without_a_grant_says_what_is_missing() {
        let gateway = arguments().block(ACCESS_KEY, SECRET);
        assert!(gateway.contains("# Nothing is allowed"), "{gateway}");
        let caller = NewArguments {
            upstream: "self".to_owned(),
            ..arguments()
        };
        let caller = caller.block(ACCESS_KEY, SECRET);
        assert!(caller.contains("# The store must know this key"), "{caller}");
        assert!(Keys::from_text(&format!("{caller}\n")).is_ok());
    }

    #[test]
    fn random_keys_are_valid_and_differ() {
        let [first, second] = [(); 2].map(|()| random_access_key().unwrap());
        assert!(
            first != second && first.len() == 20 && first.starts_with("PD"),
            "{first}"
        );
        let [first, second] = [(); 2].map(|()| random_secret().unwrap());
        assert!(first != second && first.len() == 64);
    }
}
