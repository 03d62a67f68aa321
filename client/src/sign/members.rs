//! Members of shards in samples of a batch request.

use pushdown::wire::{BatchSample, ColumnMember, RowError};

use super::ObjectPaths;
use crate::objects::Objects;

/// Adds the members of the sample with this index to its part of a request. Without effect for a whole object.
pub(crate) fn with_members(sample: BatchSample, objects: &Objects, index: usize) -> BatchSample {
    let Some(member) = objects.member(index) else {
        return sample;
    };
    let columns = (0..objects.columns().len()).map(|column| {
        let member = objects.column_member(index, column)?;
        Some(ColumnMember::new(member.name, &member.range))
    });
    let etag = objects.etag(index).unwrap_or_default();
    BatchSample {
        columns: columns.collect(),
        ..sample.with_member(member.name, &member.range, etag)
    }
}

/// Checks that the members of the sample with this index can be requested: a gateway would refuse a whole batch for one that cannot.
///
/// # Errors
/// The error of its row, by either route.
pub(crate) fn check_members(objects: &Objects, index: usize) -> Result<(), RowError> {
    if objects.member(index).is_none() {
        return Ok(());
    }
    let path = ObjectPaths::with_bucket(objects.bucket()).path(objects.key(index));
    let sample = BatchSample::for_signed_batch(path);
    let checked = with_members(sample, objects, index).check(None);
    checked.map_err(|error| RowError::from(&error))
}

#[cfg(test)]
mod tests {
    use pushdown::shard::MemberRange;

    use super::*;
    use crate::objects::{MemberRef, Object};

    #[test]
    fn a_member_that_no_gateway_accepts_is_an_error_of_its_row() {
        let member = MemberRef {
            name: "1.jpg",
            range: MemberRange::new(1024, 512, 5).unwrap(),
        };
        let good = Object {
            key: "a.tar",
            bytes: None,
            etag: Some("\"e\""),
            member: Some(member),
        };
        let outside = MemberRef {
            name: "../1.jpg",
            ..member
        };
        let objects = Objects::from_objects(
            "b",
            [
                good,
                Object { member: None, ..good },
                Object { key: "a.jpg", ..good },
                Object { etag: None, ..good },
                Object {
                    member: Some(outside),
                    ..good
                },
            ],
        );
        let checked = (0..objects.len()).map(|index| check_members(&objects, index).is_ok());
        let checked: Vec<bool> = checked.collect();
        assert_eq!(checked, [true, true, false, false, false]);
        let sample = BatchSample::for_signed_batch("/b/a.tar");
        assert_eq!(with_members(sample.clone(), &objects, 1), sample);
        assert_eq!(
            with_members(sample, &objects, 0).member_range(),
            Some(member.range)
        );
    }
}
