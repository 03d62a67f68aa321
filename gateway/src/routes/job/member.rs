//! The member of a shard that a GET or HEAD names.

use http::{HeaderValue, request::Parts};
use pushdown::{
    shard::{MemberRange, ShardFormat, check_name},
    wire::{PLAIN_HEADER_BYTES, header, is_etag_hint},
};
use pushdown_s3::{Address, escapes};

use super::{invalid, parsed, value};
use crate::{
    error::{Error, ErrorKind, Result},
    origin::ShardMember,
};

/// What describes the place of a member.
const PLACE: [&str; 4] = [
    header::OFFSET,
    header::SIZE,
    header::HEADER_SIZE,
    header::SHARD_ETAG,
];

/// The member that the request names; `None` for a whole object.
pub(super) fn for_request(parts: &Parts, query: &str, address: &Address<'_>) -> Result<Option<ShardMember>> {
    let Some(text) = value(parts, query, header::MEMBER)? else {
        for name in PLACE {
            if value(parts, query, name)?.is_some() {
                let member = header::MEMBER;
                return Err(invalid(format!(
                    "unexpected {name}: expected it with {member} only"
                )));
            }
        }
        return Ok(None);
    };
    let name = String::from_utf8(escapes::decode_lenient(&text).into_owned())
        .map_err(|_| argument(header::MEMBER, "expected percent-encoded UTF-8"))?;
    check_name(&name).map_err(|error| argument(header::MEMBER, &error.to_string()))?;
    let key = String::from_utf8_lossy(&address.key);
    let format = ShardFormat::from_key(&key)
        .ok_or_else(|| invalid("invalid object for a member: expected a key that ends in .tar or .zip"))?;
    let expected = "a non-negative integer";
    let offset: Option<u64> = parsed(parts, query, header::OFFSET, expected)?;
    let size: Option<u64> = parsed(parts, query, header::SIZE, expected)?;
    let Some((offset, size)) = offset.zip(size) else {
        let bucket = String::from_utf8_lossy(&address.bucket);
        let (first, second) = (header::OFFSET, header::SIZE);
        return Err(invalid(format!(
            "the place of the member is missing: expected {first} and {second}; look them up with \
             `pushdown ls --members s3://{bucket}/{key}`"
        )));
    };
    let header_bytes = parsed(parts, query, header::HEADER_SIZE, expected)?.unwrap_or(PLAIN_HEADER_BYTES);
    let range = MemberRange::new(offset, header_bytes, size)
        .map_err(|error| argument(header::OFFSET, &error.to_string()))?;
    let etag = value(parts, query, header::SHARD_ETAG)?
        .map(|etag| shard_etag(&etag))
        .transpose()?;
    Ok(Some(ShardMember::new(&name, range, format, etag)))
}

fn shard_etag(etag: &str) -> Result<HeaderValue> {
    let value = HeaderValue::from_str(etag).ok();
    value.filter(|_| is_etag_hint(etag)).ok_or_else(|| {
        argument(
            header::SHARD_ETAG,
            "expected the ETag as listed, with its quotation marks",
        )
    })
}

fn argument(name: &str, reason: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("invalid {name}: {reason}"))
}
