//! Bodies in `aws-chunked` framing: writes them with chunks of any size, and parses them in the plainest way, as a whole.

use anyhow::{Context as _, Result};
use aws_sigv4::http_request::SignatureLocation;
use aws_sigv4::sign::v4::{generate_signing_key, sign_chunk, sign_trailer};
use aws_smithy_runtime_api::http::Headers;
use bytes::Bytes;

use super::Keys;

/// Names and values of trailers.
pub type Trailers = Vec<(String, String)>;

/// A body in `aws-chunked` framing, in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkedBody {
    /// Data of the chunks, without the final one.
    pub chunks: Vec<Vec<u8>>,
    /// The signatures of all chunks, the final one included; empty in unsigned framing.
    pub signatures: Vec<String>,
    /// The trailers in the order of the body; names in lower case, values without surrounding spaces.
    pub trailers: Trailers,
    /// The signature of the trailers.
    pub trailer_signature: Option<String>,
}

impl ChunkedBody {
    /// Unsigned framing of these chunks, none of which may be empty.
    pub fn unsigned(chunks: &[&[u8]], trailers: Trailers) -> Self {
        Self {
            chunks: chunks.iter().map(|chunk| chunk.to_vec()).collect(),
            trailers,
            ..Self::default()
        }
    }

    /// All data.
    pub fn data(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    /// Whether the body has this length, and trailers with exactly these names (which must be sorted) and the lengths of their checksums.
    pub fn matches(&self, decoded_bytes: u64, trailers: &[&str]) -> bool {
        let mut names: Vec<_> = self.trailers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let has_length = |(name, value): &(String, String)| match name.as_str() {
            "x-amz-checksum-crc32" | "x-amz-checksum-crc32c" => value.len() == 8,
            "x-amz-checksum-sha1" => value.len() == 28,
            _ => true,
        };
        self.data().len() as u64 == decoded_bytes && names == trailers && self.trailers.iter().all(has_length)
    }

    /// The bytes of the body.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let ends = self.chunks.iter().map(|chunk| (&chunk[..], "\r\n"));
        for (index, (chunk, end)) in ends.chain([(&[][..], "")]).enumerate() {
            body.extend(format!("{:x}", chunk.len()).bytes());
            if let Some(signature) = self.signatures.get(index) {
                body.extend(format!(";chunk-signature={signature}").bytes());
            }
            body.extend(b"\r\n");
            body.extend(chunk);
            body.extend(end.bytes());
        }
        for (name, value) in &self.trailers {
            body.extend(format!("{name}:{value}\r\n").bytes());
        }
        if let Some(signature) = &self.trailer_signature {
            body.extend(format!("x-amz-trailer-signature:{signature}\r\n").bytes());
        }
        body.extend(b"\r\n");
        body
    }

    /// Parses a whole body, within the limits of the gateway. `None` if it is malformed; signatures are not verified, and any names of
    /// trailers are accepted.
    pub fn parse(body: &[u8], is_signed: bool) -> Option<Self> {
        let mut parsed = Self::default();
        let mut rest = body;
        loop {
            let (line, after) = split_line(rest)?;
            let (size, signature) = match line.split_once(";chunk-signature=") {
                Some((size, signature)) if is_signed => (size, Some(signature.to_owned())),
                None if !is_signed => (line, None),
                _ => return None,
            };
            let is_size = (1..=16).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_size || line.len() > 126 {
                return None;
            }
            parsed.signatures.extend(signature);
            let size = usize::try_from(u64::from_str_radix(size, 16).ok()?).ok()?;
            if size == 0 {
                parsed.parse_trailers(after, is_signed)?;
                return Some(parsed);
            }
            parsed.chunks.push(after.get(..size)?.to_vec());
            rest = after.get(size..)?.strip_prefix(b"\r\n")?;
        }
    }

    fn parse_trailers(&mut self, section: &[u8], is_signed: bool) -> Option<()> {
        if section.len() > 16 << 10 {
            return None;
        }
        let mut rest = section;
        loop {
            let (line, after) = split_line(rest)?;
            if line.is_empty() {
                return after.is_empty().then_some(());
            }
            let (name, value) = line.strip_suffix('\n').unwrap_or(line).split_once(':')?;
            let (name, value) = (name.to_ascii_lowercase(), value.trim_matches([' ', '\t']));
            let is_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            let is_value = is_name && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
            if self.trailer_signature.is_some() || !is_value {
                return None;
            }
            if is_signed && name == "x-amz-trailer-signature" {
                self.trailer_signature = Some(value.to_owned());
            } else {
                self.trailers.push((name, value.to_owned()));
            }
            rest = after;
        }
    }
}

/// The text before the first CRLF, and the bytes after it.
fn split_line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((line, &bytes[end + 2..]))
}

impl Keys {
    /// Signs the chunks of a body, and its trailers if there are any. `seed` is the signature of its head. The time of the keys
    /// must be set.
    pub fn sign_chunks(&self, body: ChunkedBody, seed: &str) -> Result<ChunkedBody> {
        let identity = self.identity();
        let params = self.params(&identity, SignatureLocation::Headers, None)?;
        let mut signed = ChunkedBody {
            signatures: Vec::new(),
            trailer_signature: None,
            ..body
        };
        let mut running = seed.to_owned();
        for chunk in signed.chunks.iter().map(Vec::as_slice).chain([&[][..]]) {
            let ((), signature) = sign_chunk(&Bytes::copy_from_slice(chunk), &running, &params)?.into_parts();
            signed.signatures.push(signature.clone());
            running = signature;
        }
        if !signed.trailers.is_empty() {
            let mut headers = Headers::new();
            for (name, value) in &signed.trailers {
                headers.insert(name.clone(), value.clone());
            }
            let ((), signature) = sign_trailer(&headers, &running, &params)?.into_parts();
            signed.trailer_signature = Some(signature);
        }
        Ok(signed)
    }

    /// The key that signs requests and chunks. The time of the keys must be set.
    pub fn signing_key(&self) -> Result<[u8; 32]> {
        let time = self.time.context("keys without a time")?;
        let key = generate_signing_key(&self.secret, time, &self.region, "s3");
        key.as_ref().try_into().context("a key of another length")
    }
}
