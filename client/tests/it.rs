//! Integration tests: the reader with the real gateway on its embedded store.
//!
//! - `aws`: a store that addresses as AWS does, without a gateway
//! - `order`: each sample once, in the seeded order; shards, resuming, epochs, `take`
//! - `elastic`: other worlds, batch sizes, workers and tail policies; resuming at a position
//! - `elastic_rows`: the same of rows
//! - `splits`: law 1: plain reading and every split agree bit for bit
//! - `rows`: rows of Parquet objects as samples
//! - `row_requests`: how they are requested
//! - `image_rows`: images in a column, compared with loose objects
//! - `errors`: bad samples, endpoints that are not gateways
//! - `faults`: restarts, overload, truncated answers, another engine
//! - `features`: steps that a client without models or tables refuses
//! - `engines`: a gateway with another version of ONNX Runtime
//! - `families`: a gateway with older versions of some steps
//! - `listing`: listings of many pages
//! - `inventory`: S3 Inventories in place of listings
//! - `shard_index`: the members of shards are found
//! - `uploads`: objects that are written at once and in parts
//! - `stats`: the counters of the reader, compared with the metrics of the gateway
//! - `members`: members of shards as samples: values, orders, further columns, requests
//! - `members_faults`: replaced shards, lists that lie, broken answers
//! - `shard_reader`: whole shards in their order, without an index
//! - `shard_streams`: members in shard order, whose shards are streamed
//! - `value_cache`: values cached in a folder
//! - `value_cache_reasons`: why values are not cached
//! - `materialize`: whole data sets as objects of their own
//! - `cache_hints`: hints for the gateway's result cache
//! - `signed_batches`: batches at a gateway in re-sign mode
//! - `two_addresses`: a store, and a gateway that fetches what is signed for it
//! - `lost_gateways`: such a gateway that ends, hangs, drains, or may not read the store
//! - `two_paths`: plans if the paths from store and gateway differ
//! - `auto`: plans that adapt to observations
//! - `external_models`: models with weights in external files
//! - `models`: models at the gateway, on the host, and split between both
//! - `weights`: fetching the weights of models
//! - `wide_models`: models with intermediate values larger than the objects
//! - `quantized_features`: model outputs as bf16 and int8
//!
//! Without the features `models` and `tables`, only those tests are compiled that need neither of them.
//!
//! Support modules: `world` (a gateway with objects, and readers of them), `shards` (photos in tars).

#[cfg(test)]
mod it {
    #[cfg(all(feature = "models", feature = "tables"))]
    mod auto;
    mod aws;
    mod cache_hints;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod cropped_jpeg;
    mod elastic;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod elastic_rows;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod engines;
    mod errors;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod external_models;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod families;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod faults;
    #[cfg(not(all(feature = "models", feature = "tables")))]
    mod features;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod image_rows;
    mod inventory;
    mod listing;
    mod lost_gateways;
    mod materialize;
    mod members;
    mod members_faults;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod models;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod order;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod quantized_features;
    mod replicas;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod row_columns;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod row_requests;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod rows;
    mod shard_index;
    mod shard_reader;
    mod shard_streams;
    mod shards;
    mod signed_batches;
    mod splits;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod stats;
    mod two_addresses;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod two_paths;
    mod uploads;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod value_cache;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod value_cache_reasons;
    mod warm;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod weights;
    #[cfg(all(feature = "models", feature = "tables"))]
    mod wide_models;
    mod world;
}
