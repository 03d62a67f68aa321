//! A front that addresses a store as AWS does, in a process of its own: for tests in other languages.
//!
//! `aws-front STORE ACCESS_KEY SECRET_KEY REGION LIFETIME_SECONDS` prints its URLs as one line of JSON, and runs until it is killed.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use pushdown_testkit::{AwsFront, Keys};
use serde_json::json;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, access_key, secret_key, region, lifetime_seconds] = &arguments[..] else {
        let count = arguments.len();
        bail!("expected STORE ACCESS_KEY SECRET_KEY REGION LIFETIME_SECONDS, found {count} arguments");
    };
    let store = store.parse().context("STORE: expected an address and a port")?;
    let lifetime = lifetime_seconds
        .parse()
        .context("LIFETIME_SECONDS: expected a number")?;
    let keys = Keys::new(access_key, secret_key);
    let front = AwsFront::start(store, &keys, region, Duration::from_secs(lifetime))?;
    let urls = json!({"url": front.url(), "credentials_url": front.credentials_url()});
    writeln!(io::stdout(), "{urls}")?;
    loop {
        thread::park();
    }
}
