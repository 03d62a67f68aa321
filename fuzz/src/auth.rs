//! Any bytes as the head of a request: the gateway verifies what a plain reading of the head finds signed, and nothing else. Of other
//! heads with a well-formed signature it shows the canonical request of the plain reading.

mod reading;

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use http::Request;
use http::request::Parts;
use pushdown_gateway::testing::{
    AddressStyle, AuthError, Error, Keys, Quoted, Signature, Verified, Verifier,
};

use reading::Reading;

const ACCESS_KEY: &str = "FUZZEDACCESSKEY1";
const SECRET: &str = "a secret of this target";
/// A host that clients sign in front of a proxy.
const PUBLIC_HOST: &str = "public.example";
/// The domain of virtual hosts.
const DOMAIN: &str = "s3.lab.example";
/// The time of the verification: 2026-01-01T00:00:00Z.
const NOW: Duration = Duration::from_hours(490_896);
/// Stands for the signature in an input.
const MARK: u8 = b'$';

static GATEWAY: LazyLock<(Verifier, Keys)> = LazyLock::new(|| {
    let regions = ["us-east-1", "eu-central-1"].map(str::to_owned).to_vec();
    let verifier = Verifier::new(regions, vec![DOMAIN.to_owned()], vec![PUBLIC_HOST.to_owned()]);
    (verifier, Keys::for_test(&[(ACCESS_KEY, SECRET)]))
});

/// Checks a head: a line with method and target, and a line `name:value` for each header. The first `$` becomes its signature. The
/// first three bytes choose the reading that is signed, and a byte to change afterwards.
pub fn auth(input: &[u8]) {
    check(input);
}

/// Checks a head. Returns whether it is verified.
pub(crate) fn check(input: &[u8]) -> bool {
    let Some((&[choice, at, change], text)) = input.split_first_chunk::<3>() else {
        return false;
    };
    let mut text = sign(text, usize::from(choice));
    let at = usize::from(at) * text.len() / 256;
    if let Some(byte) = text.get_mut(at) {
        *byte ^= change;
    }
    let Some(parts) = head(&text) else {
        return false;
    };
    let (verifier, keys) = &*GATEWAY;
    let address = verifier.address(&parts);
    let result = verifier.verify(&parts, address, keys, SystemTime::UNIX_EPOCH + NOW);
    let text = String::from_utf8_lossy(&text);
    let reading = || match Reading::parse(&parts) {
        Some(reading) => reading,
        None => panic!("a plain reading fails: {text}"),
    };
    match result {
        Ok(verified) => {
            let reading = reading();
            assert!(reading.is_signed(), "verified, and not signed: {text}");
            check_verified(&verified, &reading, &text);
            // Whoever reads a signature without verifying it finds the same key, or refuses.
            if let Ok(claimed) = Signature::from_parts(&parts) {
                assert_eq!(claimed.access_key(), Some(ACCESS_KEY), "{text}");
            }
            true
        }
        Err(AuthError::SignatureMismatch(mismatch)) => {
            let reading = reading();
            assert!(!reading.is_signed(), "signed, and not verified: {text}");
            let canonical = Quoted::new(reading.canonical_request());
            assert_eq!(
                mismatch.canonical_request.as_str(),
                canonical.as_str(),
                "another canonical request: {text}"
            );
            false
        }
        Err(error) => {
            // Its texts are written.
            drop(Error::from(error));
            false
        }
    }
}

/// Checks what is decided on, and sent to the store.
fn check_verified(verified: &Verified, reading: &Reading, text: &str) {
    let path = reading.path();
    let (bucket, key) = match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (path, &[][..]),
    };
    let address = verified.address();
    match address.style() {
        AddressStyle::Path => assert!(address.bucket() == bucket && address.key() == key, "{text}"),
        AddressStyle::VirtualHost => assert!(address.key() == path, "{text}"),
    }
    let parameters: Vec<_> = verified.query().pairs().collect();
    assert_eq!(parameters, reading.other_parameters(), "{text}");
}

/// Replaces the first mark with a signature of the head.
fn sign(text: &[u8], choice: usize) -> Vec<u8> {
    let mut halves = text.splitn(2, |byte| *byte == MARK);
    let (Some(before), Some(after)) = (halves.next(), halves.next()) else {
        return text.to_vec();
    };
    let with = |signature: &str| [before, signature.as_bytes(), after].concat();
    let unsigned = with(&"0".repeat(64));
    match head(&unsigned).as_ref().and_then(Reading::parse) {
        Some(reading) => with(&reading.signature(choice)),
        None => unsigned,
    }
}

/// The head of a request. `None` if it is no HTTP.
fn head(text: &[u8]) -> Option<Parts> {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut first = lines.next()?.splitn(2, |byte| *byte == b' ');
    let mut request = Request::builder().method(first.next()?).uri(first.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], &line[colon + 1..]);
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    Some(parts)
}
