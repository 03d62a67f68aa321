//! Sources of the gateway's own credentials: what each has issued signs, and nothing of it is logged.

mod instance;
mod profile;
mod web_identity;

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{AwsFront, Backend, Gateway, Keys, Response, Store, eventually};
use tempfile::TempDir;

use super::{CREDENTIALS_URL, LIFETIME, REGION, launch};
use crate::it::binary;
use crate::it::resign::{BUCKET, Client, EVERYTHING, KeysFile, key_block, leaks::signatures, trainer};

const OBJECT: &str = "/photos/k";
/// Of sessions that end within the test, at a whole second.
const SHORT_LIFETIME: Duration = Duration::from_secs(4);
/// Longest wait for credentials, or for others.
const LIMIT: Duration = Duration::from_secs(30);

/// The environment variables of a source.
type Variables = Vec<(&'static str, String)>;

/// A store with an object, a front of it, and a folder for the files of sources.
struct Lab {
    front: AwsFront,
    store: Store,
    keys_file: KeysFile,
    folder: TempDir,
}

impl Lab {
    /// Starts the embedded store, with sessions of this lifetime. `None` if it is disabled.
    fn start(lifetime: Duration) -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let store = Backend::Embedded.start(binary())?;
        let direct = Client::new(&store.keys, store.address);
        direct.store(BUCKET, "")?;
        direct.store(OBJECT, "body")?;
        Ok(Some(Self {
            front: AwsFront::start(store.address, &store.keys, REGION, lifetime)?,
            store,
            keys_file: KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?,
            folder: tempfile::tempdir()?,
        }))
    }

    /// Replaces a file as a whole, so that nobody reads a part of it, and returns its path.
    fn write(&self, name: &str, text: &str) -> Result<String> {
        let (draft, path) = (self.folder.path().join("draft"), self.folder.path().join(name));
        fs::write(&draft, text)?;
        fs::rename(draft, &path)?;
        Ok(path.display().to_string())
    }

    /// Launches a gateway that logs more than usual.
    fn launch(&self, variables: &[(&str, String)]) -> Result<Gateway> {
        launch(
            &self.front.url(),
            &self.keys_file,
            variables,
            &["--log-level=debug"],
        )
    }

    fn read(gateway: &Gateway) -> Result<Response> {
        Client::new(&trainer(), gateway.listen()).call("GET", OBJECT)
    }

    /// Reads the object, and returns the access key that the gateway has signed with. `None` if it has no credentials.
    fn signer(&self, gateway: &Gateway) -> Result<Option<String>> {
        let before = self.front.record().signers;
        let answer = Self::read(gateway)?;
        if answer.status == 503 {
            return Ok(None);
        }
        ensure!(
            answer.status == 200 && answer.text() == "body",
            "{}",
            answer.text()
        );
        let mut after = self.front.record().signers;
        after.retain(|access_key, count| before.get(access_key) != Some(&*count));
        ensure!(after.len() == 1, "one request, signed by {after:?}");
        Ok(after.into_keys().next())
    }

    /// Reads until the gateway has credentials, and returns the access key of the first answer.
    fn first_signer(&self, gateway: &Gateway) -> Result<String> {
        eventually("the gateway has credentials", LIMIT, || self.signer(gateway))
    }

    /// Reads until another access key signs than these, and returns it. No read may fail meanwhile.
    fn next_signer(&self, gateway: &Gateway, old: &[Keys]) -> Result<String> {
        eventually("other credentials sign", LIMIT, || {
            let signer = self
                .signer(gateway)?
                .context("a read failed between two sessions")?;
            let is_old = old.iter().any(|keys| keys.access == signer);
            Ok((!is_old).then_some(signer))
        })
    }

    /// Checks that the log has none of these texts, and nothing of a session or of a signature for the store.
    fn check_log(&self, gateway: &Gateway, secrets: &[&str]) -> Result<()> {
        let (sent, sessions, log) = (self.front.requests(), self.front.issued(), gateway.log()?);
        let of_sessions = sessions
            .iter()
            .flat_map(|keys| [Some(&*keys.access), Some(&*keys.secret), keys.token.as_deref()]);
        let hidden = sent
            .iter()
            .flat_map(|head| signatures(head))
            .chain(of_sessions.flatten())
            .chain(secrets.iter().copied());
        for text in hidden {
            ensure!(!log.contains(text), "{text} is in the log: {log}");
        }
        ensure!(log.contains("DEBUG"), "not a log of this level: {log}");
        Ok(())
    }
}

#[test]
fn sources_are_asked_in_the_order_of_the_sdks() -> Result<()> {
    let Some(lab) = Lab::start(LIFETIME)? else {
        return Ok(());
    };
    lab.front.accept_store_keys();
    let static_keys = &lab.store.keys;
    let environment = vec![
        ("AWS_ACCESS_KEY_ID", static_keys.access.clone()),
        ("AWS_SECRET_ACCESS_KEY", static_keys.secret.clone()),
    ];
    let of_profile = lab.front.issue_session().keys;
    let sources = [
        environment,
        profile::with_keys(&lab, &of_profile)?,
        web_identity::with_endpoint(&lab)?,
        vec![(CREDENTIALS_URL, lab.front.credentials_url())],
        instance::variables(&lab),
    ];
    // The first request to a source, for those that are endpoints.
    let requests = [
        None,
        None,
        Some("POST / "),
        Some("GET /credentials "),
        Some("PUT /latest/api/token "),
    ];
    for (first, expected) in requests.into_iter().enumerate() {
        let earlier_requests = lab.front.source_requests().len();
        let gateway = lab.launch(&sources[first..].concat())?;
        let signer = lab.first_signer(&gateway)?;
        let request = lab.front.source_requests().get(earlier_requests).cloned();
        if let Some(expected) = expected {
            ensure!(
                request.as_deref().is_some_and(|head| head.starts_with(expected)),
                "{expected}: {request:?}"
            );
            let issued = lab.front.issued().pop().context("no session")?;
            assert_eq!(signer, issued.access, "{expected}");
        } else {
            let keys = [static_keys, &of_profile][first];
            assert_eq!((signer.as_str(), request), (keys.access.as_str(), None));
        }
        lab.check_log(&gateway, &[&static_keys.access, &static_keys.secret])?;
    }
    Ok(())
}
