//! Host names as AWS has them: `BUCKET.s3.REGION.localhost`, and `s3.REGION.localhost` for path-style addresses.

/// What the host and the target of a request address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The region that the host names.
    pub(super) region: String,
    /// `None` if the request is not about one bucket.
    pub(super) bucket: Option<String>,
    /// Whether the host names the bucket.
    pub(super) is_virtual_host: bool,
    /// The target in path style.
    pub(super) target: String,
}

/// A host name without its port.
pub(super) fn host_name(host: &str) -> &str {
    host.split_once(':').map_or(host, |(name, _port)| name)
}

/// Whether a bucket can be a label of a host name. A name with a dot cannot: no certificate of AWS covers it.
pub(super) fn is_label(bucket: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (3..=63).contains(&bucket.len())
        && bucket.bytes().all(is_inner)
        && !bucket.starts_with('-')
        && !bucket.ends_with('-')
}

impl Address {
    /// Reads the values of `Host` and target. `None` for a host that is not one of AWS.
    pub(super) fn new(host: &str, target: &str) -> Option<Self> {
        let (rest, region) = host_name(host).strip_suffix(".localhost")?.rsplit_once('.')?;
        if !target.starts_with('/') || !is_label(region) {
            return None;
        }
        if rest == "s3" {
            let bucket = target[1..].split(['/', '?']).next().unwrap_or_default();
            return Some(Self {
                region: region.to_owned(),
                bucket: Some(bucket.to_owned()).filter(|bucket| !bucket.is_empty()),
                is_virtual_host: false,
                target: target.to_owned(),
            });
        }
        let bucket = rest.strip_suffix(".s3").filter(|bucket| is_label(bucket))?;
        let is_bucket = target == "/" || target.starts_with("/?");
        let key = if is_bucket { &target[1..] } else { target };
        Some(Self {
            region: region.to_owned(),
            bucket: Some(bucket.to_owned()),
            is_virtual_host: true,
            target: format!("/{bucket}{key}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, target: &str) -> Option<(String, Option<String>, bool, String)> {
        let Address {
            region,
            bucket,
            is_virtual_host,
            target,
        } = Address::new(host, target)?;
        Some((region, bucket, is_virtual_host, target))
    }

    #[test]
    fn hosts_name_regions_and_buckets() {
        let host = "photos.s3.eu-central-1.localhost:8080";
        for (target, expected) in [
            ("/", "/photos"),
            ("/?list-type=2", "/photos?list-type=2"),
            ("/a%20b?x=/", "/photos/a%20b?x=/"),
            ("//a", "/photos//a"),
        ] {
            let found = address(host, target).unwrap();
            let bucket = Some("photos".to_owned());
            assert_eq!(
                found,
                ("eu-central-1".to_owned(), bucket, true, expected.to_owned())
            );
        }
    }

    #[test]
    fn targets_name_buckets_of_other_hosts() {
        let host = "s3.us-east-1.localhost";
        for (target, bucket) in [
            ("/", None),
            ("/?x-id=ListBuckets", None),
            ("/my.bucket", Some("my.bucket")),
            ("/my.bucket?delete", Some("my.bucket")),
            ("/my.bucket/a?b", Some("my.bucket")),
        ] {
            let found = address(host, target).unwrap();
            let expected = (
                "us-east-1".to_owned(),
                bucket.map(str::to_owned),
                false,
                target.to_owned(),
            );
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn other_hosts_are_none_of_aws() {
        for host in [
            "127.0.0.1:80",
            "localhost",
            "s3.localhost",
            "my.bucket.s3.us-east-1.localhost",
            "photos.s3.us-east-1.example",
            "photos.us-east-1.localhost",
            ".s3.us-east-1.localhost",
        ] {
            assert_eq!(address(host, "/k"), None, "{host}");
        }
        assert_eq!(address("s3.us-east-1.localhost", "*"), None);
    }
}
