//! The request target of a sample at the store, which its signature covers, and the id of a sample.

use pushdown_s3::{Address, StoreEndpoint, presign};

use super::BatchSample;

impl BatchSample {
    /// The request target for the store: `path?query[&versionId=version]&X-Amz-Signature=signature`. Equal to the signed
    /// target byte for byte, except for the order of the parameters, which the signature does not cover. In a signed batch,
    /// without `query`: `path[?versionId=version]`.
    pub fn target(&self, query: Option<&str>) -> String {
        let version = self
            .version
            .as_deref()
            .map(|version| format!("versionId={version}"));
        let signature = self
            .signature
            .as_deref()
            .map(|signature| format!("{}={signature}", presign::SIGNATURE));
        let parameters = [query.map(str::to_owned), version, signature];
        let parameters: Vec<String> = parameters.into_iter().flatten().collect();
        if parameters.is_empty() {
            return self.path.clone();
        }
        format!("{}?{}", self.path, parameters.join("&"))
    }

    /// The id for random draws, of a sample in a request that states this `store`; see [`sample_id`].
    pub fn id(&self, store: Option<&StoreEndpoint>) -> Vec<u8> {
        sample_id(store, &self.path, self.member.as_deref())
    }
}

/// The id of a sample for random draws: the percent-decoded key, followed by `\0` and the member for a sample of a shard.
///
/// `path` is the signed path, for the `store` that the request states: see [`Address::new`]. `+` and `%` without two hex digits are literal.
/// The id does not depend on bucket, endpoint, version, and on where the request names the bucket.
pub fn sample_id(store: Option<&StoreEndpoint>, path: &str, member: Option<&str>) -> Vec<u8> {
    let mut id = Address::new(store, path)
        .map(|address| address.key.into_owned())
        .unwrap_or_default();
    if let Some(member) = member {
        id.push(0);
        id.extend_from_slice(member.as_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::{super::PRESIGN, *};

    fn sample() -> BatchSample {
        BatchSample::new("/bucket/a%20b+c/%2F%C3%A9.jpg", "0f".repeat(32))
    }

    #[test]
    fn ids_are_decoded_keys() {
        assert_eq!(sample().id(None), "a b+c//\u{e9}.jpg".as_bytes());
        assert_eq!(sample_id(None, "/bucket//x/%zz%4", None), b"/x/%zz%4");
        assert_eq!(sample_id(None, "/bucket/k", Some("m/1.jpg")), b"k\0m/1.jpg");
        assert_eq!(sample_id(None, "/other/k%00", None), b"k\0");
        for path in ["", "/", "/bucket", "/bucket/", "bucket"] {
            assert_eq!(sample_id(None, path, None), b"", "{path}");
        }
    }

    /// Otherwise random steps would draw other pixels at the gateway than on the host, in silence.
    #[test]
    fn an_id_does_not_depend_on_where_the_bucket_is_named() {
        let photos: StoreEndpoint = "https://photos.s3.example; bucket=photos".parse().unwrap();
        let store: StoreEndpoint = "https://s3.example".parse().unwrap();
        for (path, key) in [
            ("/train/1.jpg", "train/1.jpg"),
            ("/1.jpg", "1.jpg"),
            ("//x/%20", "/x/ "),
        ] {
            let member = Some("m/1.jpg");
            let path_style = format!("/photos{path}");
            assert_eq!(sample_id(Some(&photos), path, None), key.as_bytes());
            for store in [None, Some(&store)] {
                assert_eq!(
                    sample_id(store, &path_style, member),
                    sample_id(Some(&photos), path, member)
                );
            }
        }
    }

    #[test]
    fn targets_equal_the_signed_targets() {
        let mut sample = sample();
        assert_eq!(
            sample.target(Some(PRESIGN)),
            format!(
                "/bucket/a%20b+c/%2F%C3%A9.jpg?{PRESIGN}&X-Amz-Signature={}",
                "0f".repeat(32)
            )
        );
        sample.version = Some("abc.1".to_owned());
        assert!(
            sample
                .target(Some(PRESIGN))
                .contains("&versionId=abc.1&X-Amz-Signature=")
        );
        let mut unsigned = BatchSample::for_signed_batch("/bucket/k");
        assert_eq!(unsigned.target(None), "/bucket/k");
        unsigned.version = Some("abc.1".to_owned());
        assert_eq!(unsigned.target(None), "/bucket/k?versionId=abc.1");
    }
}
