//! `manifest.json`: which files an inventory consists of.

use serde::Deserialize;

use super::{csv::CsvColumns, fault::Fault};

/// Number of hex digits of an MD5 sum.
const MD5_DIGITS: usize = 32;

/// What a manifest says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The bucket of the data files.
    pub(super) destination_bucket: String,
    pub(super) format: FileFormat,
    pub(super) files: Vec<DataFile>,
}

/// The format of all data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// Compressed by gzip, without a header.
    Csv(CsvColumns),
    Parquet,
}

/// A data file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct DataFile {
    pub(super) key: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Hex digits.
    #[serde(rename = "MD5checksum")]
    pub(super) md5: String,
}

/// The fields of `manifest.json` that are read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    source_bucket: String,
    destination_bucket: String,
    file_format: String,
    #[serde(default)]
    file_schema: String,
    files: Vec<DataFile>,
}

impl Manifest {
    /// Reads the manifest of an inventory of `bucket`.
    ///
    /// # Errors
    /// For another document, another bucket, a format that is not supported, and missing columns.
    pub(super) fn parse(text: &[u8], bucket: &str) -> Result<Self, Fault> {
        let document = serde_json::from_slice::<Document>(text);
        let document = document.map_err(|error| Fault::Manifest(error.to_string()))?;
        if document.source_bucket != bucket {
            return Err(Fault::OtherBucket {
                expected: bucket.to_owned(),
                found: document.source_bucket,
            });
        }
        let format = match &*document.file_format {
            "CSV" => FileFormat::Csv(CsvColumns::parse(&document.file_schema)?),
            "Parquet" => FileFormat::Parquet,
            _ => return Err(Fault::Format(document.file_format)),
        };
        let is_md5 =
            |text: &str| text.len() == MD5_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if let Some(DataFile { key, md5, .. }) = document.files.iter().find(|file| !is_md5(&file.md5)) {
            let text = format!("expected an MD5 sum of {MD5_DIGITS} hex digits for `{key}`, found `{md5}`");
            return Err(Fault::Manifest(text));
        }
        let destination_bucket = bucket_of_arn(&document.destination_bucket).ok_or_else(|| {
            let found = &document.destination_bucket;
            Fault::Manifest(format!(
                "expected a destination bucket such as arn:aws:s3:::bucket, found `{found}`"
            ))
        })?;
        Ok(Self {
            destination_bucket: destination_bucket.to_owned(),
            format,
            files: document.files,
        })
    }
}

impl FileFormat {
    /// Whether a file is held in memory as a whole.
    pub(super) const fn is_held(self) -> bool {
        matches!(self, Self::Parquet)
    }
}

/// The bucket of an ARN such as `arn:aws:s3:::bucket`, in any partition.
fn bucket_of_arn(arn: &str) -> Option<&str> {
    let (partition, bucket) = arn.strip_prefix("arn:")?.split_once(":s3:::")?;
    let is_valid = !partition.contains(':') && !bucket.is_empty() && !bucket.contains(['/', ':']);
    is_valid.then_some(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag";

    fn document(changes: &[(&str, serde_json::Value)]) -> Vec<u8> {
        let mut document = serde_json::json!({
            "sourceBucket": "photos",
            "destinationBucket": "arn:aws:s3:::lists",
            "version": "2016-11-30",
            "creationTimestamp": "1514944800000",
            "fileFormat": "CSV",
            "fileSchema": SCHEMA,
            "files": [{ "key": "a/1.csv.gz", "size": 2_147_483_647, "MD5checksum": "f11166069f1990abeb9c97ace9cdfabc" }],
        });
        for (name, value) in changes {
            document[*name] = value.clone();
        }
        serde_json::to_vec(&document).unwrap()
    }

    fn fault(changes: &[(&str, serde_json::Value)]) -> String {
        Manifest::parse(&document(changes), "photos")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_manifest_names_its_files() {
        let manifest = Manifest::parse(&document(&[]), "photos").unwrap();
        let expected = Manifest {
            destination_bucket: "lists".to_owned(),
            format: FileFormat::Csv(CsvColumns::parse(SCHEMA).unwrap()),
            files: vec![DataFile {
                key: "a/1.csv.gz".to_owned(),
                size: 2_147_483_647,
                md5: "f11166069f1990abeb9c97ace9cdfabc".to_owned(),
            }],
        };
        assert_eq!(manifest, expected);
        let parquet = [
            ("fileFormat", "Parquet".into()),
            ("fileSchema", "message s3.inventory {}".into()),
        ];
        let parquet = Manifest::parse(&document(&parquet), "photos").unwrap();
        assert_eq!(parquet.format, FileFormat::Parquet);
    }

    #[test]
    fn buckets_are_named_by_arns_of_each_partition() {
        for (arn, expected) in [
            ("arn:aws:s3:::lists", Some("lists")),
            ("arn:aws-cn:s3:::lists", Some("lists")),
            ("arn:aws-us-gov:s3:::my.lists", Some("my.lists")),
            ("arn:aws:s3:::", None),
            ("arn:aws:s3:::lists/a", None),
            ("arn:aws:s3:us-east-1:1:accesspoint/a", None),
            ("lists", None),
            ("", None),
        ] {
            assert_eq!(bucket_of_arn(arn), expected, "{arn}");
        }
    }

    #[test]
    fn manifests_of_other_inventories_are_refused() {
        for (name, value, expected) in [
            (
                "sourceBucket",
                "others".into(),
                "expected an inventory of the bucket `photos`, found one of `others`",
            ),
            (
                "fileFormat",
                "ORC".into(),
                "expected the format CSV or Parquet, found ORC: set one of them as the output format",
            ),
            (
                "fileSchema",
                "Bucket, Key, ETag".into(),
                "expected the column Size, found Bucket, Key, ETag: add it",
            ),
            (
                "fileSchema",
                "Bucket, Size".into(),
                "expected the column Key, found Bucket, Size",
            ),
            (
                "destinationBucket",
                "lists".into(),
                "invalid manifest: expected a destination bucket such as arn:aws:s3:::bucket, found `lists`",
            ),
            (
                "files",
                serde_json::json!([{ "key": "a", "size": 1, "MD5checksum": "5925f4e78e1695c2d020b9f6eexample" }]),
                "invalid manifest: expected an MD5 sum of 32 hex digits for `a`, found `5925f4e78e1695c2d020b9f6eexample`",
            ),
            (
                "files",
                serde_json::json!([{ "key": "a", "size": -1, "MD5checksum": "" }]),
                "invalid manifest: invalid value",
            ),
            (
                "files",
                serde_json::Value::Null,
                "invalid manifest: invalid type: null",
            ),
        ] {
            let fault = fault(&[(name, value)]);
            assert!(fault.starts_with(expected), "{fault}");
        }
        let fault = Manifest::parse(b"<Error>", "photos").unwrap_err().to_string();
        assert!(
            fault.starts_with("invalid manifest: expected value at line 1"),
            "{fault}"
        );
    }
}
