//! A plain reading of a signed head: what version 4 of AWS signatures covers, written down as a whole. It refuses only what it cannot
//! read.

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::request::Parts;
use sha2::{Digest as _, Sha256};

use super::{PUBLIC_HOST, SECRET};

/// Parameters that are for the gateway alone.
const OWN_PARAMETERS: [&str; 7] = [
    "X-Amz-Algorithm",
    "X-Amz-Content-Sha256",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
];

/// A head with a signature, in the query or else in the `Authorization` header.
pub(super) struct Reading {
    /// The path, decoded.
    path: Vec<u8>,
    /// The parameters, encoded and sorted.
    parameters: Vec<(String, String)>,
    claim: Claim,
    /// The canonical requests of all that clients may sign: the sent host and the public one, each with the encoded path and with the
    /// path as sent.
    canonical_requests: [Vec<u8>; 4],
}

/// What the head says about its signature.
struct Claim {
    /// `KEY/date/region/s3/aws4_request`.
    credential: String,
    signed_headers: String,
    signature: String,
    timestamp: String,
    payload: String,
}

impl Reading {
    /// Reads a head. `None` if it has no signature, or one that lacks a part.
    pub(super) fn parse(parts: &Parts) -> Option<Self> {
        let path = unescape(parts.uri.path())?;
        let mut parameters = Vec::new();
        for pair in parts.uri.query().unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !pair.is_empty() {
                parameters.push((component(name)?, component(value)?));
            }
        }
        parameters.sort();
        let claim = Claim::parse(parts, &parameters)?;
        let host = parts.headers.get("host")?.as_bytes();
        let encoded = escape(&path, true);
        let canonical = |host: &[u8], path: &str| canonical_request(parts, &parameters, &claim, host, path);
        let canonical_requests = [
            canonical(host, &encoded),
            canonical(host, parts.uri.path()),
            canonical(PUBLIC_HOST.as_bytes(), &encoded),
            canonical(PUBLIC_HOST.as_bytes(), parts.uri.path()),
        ];
        Some(Self {
            path,
            parameters,
            claim,
            canonical_requests,
        })
    }

    /// Whether the signature of the head is one of those that it should have.
    pub(super) fn is_signed(&self) -> bool {
        (0..self.canonical_requests.len()).any(|choice| self.signature(choice) == self.claim.signature)
    }

    /// The signature that the head should have, for one of the canonical requests.
    pub(super) fn signature(&self, choice: usize) -> String {
        let mut scope = self.claim.credential.rsplitn(5, '/');
        let mut next = || scope.next().unwrap_or_default();
        let (terminal, service, region, date) = (next(), next(), next(), next());
        let request = &self.canonical_requests[choice % self.canonical_requests.len()];
        let text = format!(
            "AWS4-HMAC-SHA256\n{}\n{date}/{region}/{service}/{terminal}\n{}",
            self.claim.timestamp,
            hex(&Sha256::digest(request))
        );
        let mut key = format!("AWS4{SECRET}").into_bytes();
        for part in [date, region, service, terminal] {
            key = hmac(&key, part);
        }
        hex(&hmac(&key, &text))
    }

    /// The canonical request of the sent host and the encoded path.
    pub(super) fn canonical_request(&self) -> &[u8] {
        &self.canonical_requests[0]
    }

    /// The decoded path without its first slash.
    pub(super) fn path(&self) -> &[u8] {
        self.path.strip_prefix(b"/").unwrap_or(&self.path)
    }

    /// The parameters that are not for the gateway alone.
    pub(super) fn other_parameters(&self) -> Vec<(&str, &str)> {
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|(name, value)| (name.as_str(), value.as_str()));
        parameters
            .filter(|(name, _)| !OWN_PARAMETERS.contains(name))
            .collect()
    }
}

impl Claim {
    fn parse(parts: &Parts, parameters: &[(String, String)]) -> Option<Self> {
        let header = |name: &str| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
        let parameter = |name: &str| {
            let (_, value) = parameters.iter().find(|(found, _)| found == name)?;
            String::from_utf8(unescape(value)?).ok()
        };
        let hash = header("x-amz-content-sha256");
        if let Some(signature) = parameter("X-Amz-Signature") {
            let payload = parameter("X-Amz-Content-Sha256").or(hash);
            return Some(Self {
                credential: parameter("X-Amz-Credential")?,
                signed_headers: parameter("X-Amz-SignedHeaders")?,
                signature,
                timestamp: parameter("X-Amz-Date")?,
                payload: payload.unwrap_or_else(|| "UNSIGNED-PAYLOAD".to_owned()),
            });
        }
        let authorization = header("authorization")?;
        let field = |name: &str| {
            let mut fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ")?.split(',');
            fields.find_map(|field| Some(field.trim().strip_prefix(name)?.to_owned()))
        };
        Some(Self {
            credential: field("Credential=")?,
            signed_headers: field("SignedHeaders=")?,
            signature: field("Signature=")?,
            timestamp: header("x-amz-date")?,
            payload: hash?,
        })
    }
}

fn canonical_request(
    parts: &Parts,
    parameters: &[(String, String)],
    claim: &Claim,
    host: &[u8],
    path: &str,
) -> Vec<u8> {
    let query = parameters.iter().filter(|(name, _)| name != "X-Amz-Signature");
    let query: Vec<_> = query.map(|(name, value)| format!("{name}={value}")).collect();
    let mut names: Vec<_> = claim.signed_headers.split(';').collect();
    names.sort_unstable();
    let mut text = format!("{}\n{path}\n{}\n", parts.method, query.join("&")).into_bytes();
    for name in &names {
        let values: Vec<_> = if *name == "host" {
            vec![single_spaces(host)]
        } else {
            let values = parts.headers.get_all(*name).iter();
            values.map(|value| single_spaces(value.as_bytes())).collect()
        };
        text.extend([name.as_bytes(), b":", &values.join(&b","[..]), b"\n"].concat());
    }
    text.extend(format!("\n{}\n{}", names.join(";"), claim.payload).bytes());
    text
}

/// A value without spaces at its ends, and with single spaces inside.
fn single_spaces(value: &[u8]) -> Vec<u8> {
    let words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(&b' ')
}

/// A name or a value of a query, encoded. A plus is a space.
fn component(text: &str) -> Option<String> {
    Some(escape(&unescape(&text.replace('+', " "))?, false))
}

fn escape(bytes: &[u8], keeps_slashes: bool) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(*byte));
            }
            b'/' if keeps_slashes => text.push('/'),
            _ => text.extend(["%", &hex(&[*byte]).to_ascii_uppercase()]),
        }
    }
    text
}

/// Decodes escapes. `None` for a percent sign without two hex digits.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.as_bytes().split(|byte| *byte == b'%');
    let mut bytes = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let digits = std::str::from_utf8(part.get(..2)?).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part[2..]);
    }
    Some(bytes)
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac.chain_update(text).finalize().into_bytes().to_vec(),
        Err(error) => panic!("{error}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}
