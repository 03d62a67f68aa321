//! The identity of an object at the store, and of a part of it.

use http::{HeaderValue, Uri};
use pushdown::{
    pipeline::Digest,
    wire::{StoreEndpoint, header},
};
use pushdown_s3::{Address, escapes, presign};

use super::ShardMember;
use crate::s3::query;

/// The parameter that selects a version.
const VERSION_ID: &str = "versionId";

/// Parameters on which the answer of a store does not depend, except that it can be a refusal: those of signatures, and the name of
/// the operation that some SDKs send.
const NEUTRAL_PARAMETERS: [&str; 12] = [
    presign::ALGORITHM,
    presign::CREDENTIAL,
    presign::DATE,
    presign::EXPIRES,
    presign::SIGNED_HEADERS,
    presign::SECURITY_TOKEN,
    presign::CONTENT_SHA256,
    presign::SIGNATURE,
    "AWSAccessKeyId",
    "Expires",
    "Signature",
    "x-id",
];

/// The address of an object: host, path and version of the request that reads it, percent-decoded, with all other parameters that a
/// store could answer differently to. If the object is a shard, it can be that of a member.
///
/// The host is part of it, because the path of a virtual-hosted address lacks the bucket. Of a store that the request states, scheme, host
/// and port are: what a caller claims never merges two stores. Two addresses of one object are two objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId {
    digest: Digest,
    /// Without the member.
    object: Digest,
    container: u64,
    path_hash: u64,
    sample_hash: u64,
}

impl ObjectId {
    /// The object that a request to `host` with this target reads at the gateway's own store.
    pub fn new(host: Option<&HeaderValue>, target: &Uri) -> Self {
        let host = host.map_or(&b""[..], HeaderValue::as_bytes).to_ascii_lowercase();
        Self::at_place(&[&host[..]], None, target)
    }

    /// The object that a request with this target reads at a store that it states.
    pub fn at_store(store: &StoreEndpoint, target: &Uri) -> Self {
        let url = store.url().to_string();
        // No path of the gateway's own store is such a URL.
        Self::at_place(&[&b"store"[..], url.as_bytes()], Some(store), target)
    }

    /// The object with this target at a `place`.
    fn at_place(place: &[&[u8]], store: Option<&StoreEndpoint>, target: &Uri) -> Self {
        let path = decoded_path(target);
        let query = target.query().unwrap_or_default();
        let version = query::values(query, VERSION_ID).next().unwrap_or_default();
        let version = escapes::decode_lenient(version).into_owned();
        let name = sample_path(store, target);
        let bucket = name.split(|byte| *byte == b'/').nth(1).unwrap_or_default();
        let mut others: Vec<_> = query::decoded(query)
            .filter(|(name, _)| !is_neutral(name) && name[..] != *VERSION_ID.as_bytes())
            .collect();
        others.sort_unstable();
        let others = others.iter().flat_map(|(name, value)| [&name[..], &value[..]]);
        let parts = place.iter().copied().chain([&path[..], &version]).chain(others);
        let digest = Digest::from_parts(parts);
        let path_hash = Digest::new(&name).first_u64();
        Self {
            container: Digest::from_parts(place.iter().copied().chain([bucket])).first_u64(),
            digest,
            object: digest,
            path_hash,
            sample_hash: path_hash,
        }
    }

    /// The id of a member of this object, which is at `target`, of the `store` that the request states. Whoever may read the object may read
    /// its members.
    #[must_use]
    pub fn member(&self, store: Option<&StoreEndpoint>, target: &Uri, member: &ShardMember) -> Self {
        let place = member.digest();
        let name = [&sample_path(store, target)[..], b"\0", member.name().as_bytes()].concat();
        Self {
            digest: Digest::from_parts([self.digest.as_bytes(), &b"member"[..], place.as_bytes()]),
            sample_hash: Digest::new(&name).first_u64(),
            ..*self
        }
    }

    /// The id of a cell of the table in this object, by the digest of its bytes. Only for keys: an authorization is for objects.
    #[must_use]
    pub fn cell(&self, bytes: &Digest) -> Self {
        let digest = Digest::from_parts([self.digest.as_bytes(), &b"cell"[..], bytes.as_bytes()]);
        Self {
            container: Digest::from_parts([&self.container.to_le_bytes()[..], b"cells"]).first_u64(),
            path_hash: digest.first_u64(),
            sample_hash: digest.first_u64(),
            object: digest,
            digest,
        }
    }

    /// Whether it is an object with this name, in any version, or a member of one.
    pub fn is_at(&self, bucket: &[u8], key: &[u8]) -> bool {
        Digest::new(&[b"/", bucket, b"/", key].concat()).first_u64() == self.path_hash
    }

    /// Digest of host, path and version, and of the member.
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Digest of host, path and version: all members of an object have the same.
    pub const fn object_digest(&self) -> &Digest {
        &self.object
    }

    /// What groups objects into data sets: a hash of host and bucket.
    pub const fn container(&self) -> u64 {
        self.container
    }

    /// The first 64 bits of the SHA-256 of `/bucket/key`, percent-decoded, whether the path or the host names the bucket.
    pub const fn path_hash(&self) -> u64 {
        self.path_hash
    }

    /// The same for an object. For a member, that of `/bucket/key`, a NUL and the name of the member. A reader can compute it: it
    /// decides whether values of the sample are cached.
    pub const fn sample_hash(&self) -> u64 {
        self.sample_hash
    }
}

/// Whether a parameter is neutral, or for the gateway.
fn is_neutral(name: &[u8]) -> bool {
    name.starts_with(header::PREFIX.as_bytes())
        || NEUTRAL_PARAMETERS
            .iter()
            .any(|neutral| neutral.as_bytes() == name)
}

/// `/bucket/key` of a target, percent-decoded, or the path of something else than an object.
fn sample_path(store: Option<&StoreEndpoint>, target: &Uri) -> Vec<u8> {
    match Address::new(store, target.path()) {
        Some(address) => [&b"/"[..], &address.bucket, b"/", &address.key].concat(),
        None => decoded_path(target),
    }
}

fn decoded_path(target: &Uri) -> Vec<u8> {
    escapes::decode_lenient(target.path()).into_owned()
}

#[cfg(test)]
mod tests {
    use pushdown::{
        shard::{MemberRange, ShardFormat},
        wire::{member_hash, object_hash},
    };

    use super::*;

    fn id(host: &'static str, target: &'static str) -> ObjectId {
        ObjectId::new(Some(&HeaderValue::from_static(host)), &Uri::from_static(target))
    }

    #[test]
    fn equal_addresses_have_equal_ids() {
        let first = id("store:80", "/b/a%20b?X-Amz-Signature=1");
        assert_eq!(
            first,
            id("STORE:80", "/b/%61%20b?x-id=GetObject&x-pushdown-split=1")
        );
        assert_eq!(id("store:80", "/b/k?a=1&b=2"), id("store:80", "/b/k?%62=%32&a=1"));
        for other in [
            id("store:80", "/b/a%20b?partNumber=1"),
            id("store:80", "/b/a%20b?%70artNumber=1"),
            id("store:80", "/b/a%20b?width=64"),
            id("store:80", "/b/a%20b?response-content-disposition=inline"),
            id("store:80", "/b/a%20b?X-AMZ-Signature=1"),
            id("other:80", "/b/a%20b"),
            id("store:80", "/b/a+b"),
            id("store:80", "/b/a%20b?versionId=1"),
        ] {
            assert_ne!(first, other);
        }
    }

    fn stated(store: &str, target: &'static str) -> ObjectId {
        ObjectId::at_store(&store.parse().unwrap(), &Uri::from_static(target))
    }

    #[test]
    fn objects_of_stated_stores_differ_by_scheme_host_and_port() {
        let first = stated("https://s3.example", "/b/k?X-Amz-Signature=1");
        assert_eq!(first, stated("https://S3.Example.:443", "/b/k?X-Amz-Signature=2"));
        for other in [
            stated("http://s3.example:443", "/b/k"),
            stated("http://s3.example", "/b/k"),
            stated("https://s3.example:8443", "/b/k"),
            stated("https://other.example", "/b/k"),
            stated("https://b.s3.example; bucket=b", "/k"),
            id("s3.example", "/b/k"),
            id("https://s3.example", "/b/k"),
            id("store", "/b/k"),
        ] {
            assert_ne!(first.digest(), other.digest());
            assert_ne!(first.container(), other.container());
            assert_eq!(first.sample_hash(), other.sample_hash());
        }
        // A caller's claim about the bucket changes no address, and the object is the same one.
        let claims = ["https://b.s3.example", "https://b.s3.example; bucket=b"];
        let [path_style, virtual_host] = claims.map(|store| stated(store, "/a/k"));
        assert_eq!(path_style.digest(), virtual_host.digest());
        assert_ne!(path_style.sample_hash(), virtual_host.sample_hash());
    }

    /// Readers of both styles compute the same hash: it decides which samples are cached.
    #[test]
    fn the_host_of_a_bucket_names_it_in_data_sets_and_hashes() {
        let object = stated("https://photos.s3.example; bucket=photos", "/train/cat%201.jpg");
        assert_eq!(object.sample_hash(), object_hash("photos", "train/cat 1.jpg"));
        assert!(object.is_at(b"photos", b"train/cat 1.jpg"));
        let other = stated("https://photos.s3.example; bucket=photos", "/test/1.jpg");
        assert_eq!(object.container(), other.container());
        let store: StoreEndpoint = "https://photos.s3.example; bucket=photos".parse().unwrap();
        let target = Uri::from_static("/train%201.tar");
        let range = MemberRange::new(0, 512, 7).unwrap();
        let member = ShardMember::new("a.jpg", range, ShardFormat::Tar, None);
        let member = ObjectId::at_store(&store, &target).member(Some(&store), &target, &member);
        assert_eq!(
            member.sample_hash(),
            member_hash("photos", "train 1.tar", "a.jpg")
        );
    }

    #[test]
    fn objects_of_a_bucket_are_in_one_container() {
        let container = |target| id("store", target).container();
        assert_eq!(
            container("/photos/a/1.jpg"),
            container("/photos/2.jpg?versionId=7")
        );
        assert_ne!(container("/photos/a"), container("/photo/s/a"));
    }

    #[test]
    fn a_cell_differs_from_its_object_and_from_other_cells() {
        let object = id("store", "/b/table.parquet");
        let cell = object.cell(&Digest::new(b"1"));
        assert_eq!(cell, object.cell(&Digest::new(b"1")));
        for other in [
            object,
            object.cell(&Digest::new(b"2")),
            id("store", "/b/other.parquet").cell(&Digest::new(b"1")),
        ] {
            assert_ne!(cell, other);
        }
        assert_ne!(cell.container(), object.container());
        assert_eq!(cell.container(), object.cell(&Digest::new(b"2")).container());
    }

    #[test]
    fn a_member_belongs_to_its_object_and_differs_from_other_members() {
        let target = Uri::from_static("/photos/train%201.tar");
        let shard = ObjectId::new(None, &target);
        let member = |name, offset, size| {
            let range = MemberRange::new(offset, 512, size).unwrap();
            shard.member(
                None,
                &target,
                &ShardMember::new(name, range, ShardFormat::Tar, None),
            )
        };
        let first = member("a.jpg", 0, 7);
        assert_eq!(first, member("a.jpg", 0, 7));
        for other in [
            shard,
            member("b.jpg", 0, 7),
            member("a.jpg", 512, 7),
            member("a.jpg", 0, 8),
        ] {
            assert_ne!(first, other);
            assert_ne!(first.digest(), other.digest());
            assert_eq!(first.object_digest(), other.object_digest());
            assert_eq!(first.container(), other.container());
            assert_eq!(first.path_hash(), other.path_hash());
        }
        assert!(first.is_at(b"photos", b"train 1.tar"));
        assert_ne!(first.sample_hash(), member("b.jpg", 0, 7).sample_hash());
        assert_eq!(first.sample_hash(), member_hash("photos", "train 1.tar", "a.jpg"));
        assert_eq!(shard.sample_hash(), object_hash("photos", "train 1.tar"));
    }

    /// Readers compute the same hash: it never changes.
    #[test]
    fn the_path_hash_is_that_of_the_decoded_path() {
        let id = id("store", "/photos/cat%201.jpg?versionId=7");
        assert_eq!(id.path_hash(), Digest::new(b"/photos/cat 1.jpg").first_u64());
        assert!(id.is_at(b"photos", b"cat 1.jpg"));
        assert!(!id.is_at(b"photos", b"cat%201.jpg") && !id.is_at(b"photo", b"cat 1.jpg"));
    }
}
