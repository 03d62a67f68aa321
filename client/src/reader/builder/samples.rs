//! Checks that the samples of a data set can be read as the settings require.

use pushdown::{
    Pipeline,
    shard::{ShardFormat, shard_kind},
    wire::check_columns,
};

use super::{PushdownReaderBuilder, applies::does_not_apply};
use crate::{
    epoch::order::SampleOrder,
    error::{Error, Result},
    objects::Objects,
};

impl PushdownReaderBuilder {
    /// Refuses whole shards as samples, an order of shards without members, and further columns that cannot be requested.
    pub(super) fn check_samples(&self, objects: &Objects, pipeline: &Pipeline) -> Result<()> {
        if objects.has_members() {
            let columns: Vec<String> = objects
                .columns()
                .iter()
                .map(|name| String::from(&**name))
                .collect();
            return check_columns(&columns).map_err(|error| Error::config(error.to_string()));
        }
        if self.spec.order != SampleOrder::Global {
            return Err(does_not_apply(
                "order=shards",
                "whole objects",
                "global, a list of members, which `pushdown index` makes, or a reader of shards (`build_shards`)",
            ));
        }
        check_not_shards(objects, pipeline)
    }
}

/// Refuses shards of which each would be one sample: no shard decodes.
fn check_not_shards(objects: &Objects, pipeline: &Pipeline) -> Result<()> {
    let decodes = pipeline
        .steps()
        .first()
        .is_some_and(|step| step.name() == "decode");
    let mut keys = (0..objects.len()).map(|index| objects.key(index));
    if !decodes || objects.is_empty() || !keys.all(|key| shard_kind(key).is_some()) {
        return Ok(());
    }
    let (bucket, first) = (objects.bucket(), objects.key(0));
    let mut keys = (0..objects.len()).map(|index| objects.key(index));
    if let Some(compressed) = keys.find(|key| ShardFormat::from_key(key).is_none()) {
        return Err(Error::config(format!(
            "found {} shards, expected samples: s3://{bucket}/{compressed} is compressed, so its members cannot be indexed; read whole \
             shards in their order (`--order shards`, `build_shards`)",
            objects.len()
        )));
    }
    Err(Error::config(format!(
        "found {} shards, expected an index of their members, without which samples cannot be decoded and shuffled: run `pushdown index \
         's3://{bucket}/{first}' -o list.parquet` (braces name many shards, as in `train-{{000000..000999}}.tar`), and read the samples \
         of that list",
        objects.len()
    )))
}

#[cfg(test)]
mod tests {
    use pushdown::shard::MemberRange;

    use super::*;
    use crate::objects::{MemberRef, Object};

    fn check(objects: &Objects, pipeline: &str, order: SampleOrder) -> Result<(), String> {
        let builder = PushdownReaderBuilder::default().order(order);
        let pipeline = Pipeline::parse(pipeline).map_err(|error| error.to_string())?;
        let checked = builder.check_samples(objects, &pipeline);
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn whole_shards_are_refused_with_the_command_that_indexes_them() {
        let shards = Objects::from_keys("b", ["train/0.tar", "train/1.TAR", "train/2.zip"]);
        let refused = check(&shards, "decode | resize(8, 8)", SampleOrder::Global).unwrap_err();
        assert!(
            refused.starts_with("found 3 shards, expected an index of their members")
                && refused.contains("`pushdown index 's3://b/train/0.tar' -o list.parquet`"),
            "{refused}"
        );
        let compressed = Objects::from_keys("b", ["0.tar", "1.tar.gz"]);
        let refused = check(&compressed, "decode", SampleOrder::Global).unwrap_err();
        assert!(
            refused.contains("s3://b/1.tar.gz is compressed") && refused.contains("`--order shards`"),
            "{refused}"
        );
        let some = Objects::from_keys("b", ["0.tar", "1.jpg"]);
        assert_eq!(check(&some, "decode", SampleOrder::Global), Ok(()));
        assert_eq!(check(&shards, "select(columns=[a])", SampleOrder::Global), Ok(()));
        let none = Objects::from_keys("b", [""; 0]);
        assert_eq!(check(&none, "decode", SampleOrder::Global), Ok(()));
    }

    #[test]
    fn an_order_of_shards_requires_members() {
        let by_shards = SampleOrder::Shards { buffer: 8 };
        let photos = Objects::from_keys("b", ["1.jpg"]);
        let refused = check(&photos, "decode", by_shards).unwrap_err();
        assert!(refused.contains("`pushdown index`"), "{refused}");
        let member = Object {
            key: "0.tar",
            bytes: None,
            etag: Some("\"e\""),
            member: Some(MemberRef {
                name: "1.jpg",
                range: MemberRange::new(0, 512, 5).unwrap(),
            }),
        };
        let members = Objects::from_objects("b", [member]);
        assert_eq!(check(&members, "decode", by_shards), Ok(()));
    }
}
