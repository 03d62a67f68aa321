//! Integration tests: the program `pushdown` with the real gateway on its embedded store.
//!
//! - `aws`: a store that addresses as AWS does, with sessions that end
//! - `cli`: help, checks, values, statistics, errors
//! - `endpoints`: where the endpoint is configured
//! - `hidden_objects`: objects that are no samples
//! - `output_files`: the format of output files by their extension
//! - `broken_answers`: answers that end early, and signals, while a file is written
//! - `hostile_text`: names and errors that try to control the terminal
//! - `tables`: remote and local scans, and `schema`
//! - `table_faults`: tables of stores that change or misbehave while they are read
//! - `placement`: local or remote scans of tables, by the link rate
//! - `explain`: plans for tiers that share CPUs
//! - `explain_models`: plans for pipelines with a model
//! - `read_members`: members of shards as samples
//! - `read_shards`: whole shards in their order, without an index
//! - `warnings`: warnings about models
//! - `outages`: what is logged about outages
//! - `families`: a gateway with an older version of some steps
//! - `engines`: a gateway with another version of ONNX Runtime
//! - `weights`: a host without ONNX Runtime
//! - `value_cache_reasons`: why values are not cached
//! - `value_cache_claims`: processes that share a value cache
//! - `result_cache`: what reports say of the result cache of the gateway
//! - `inventory`: `warm` by an S3 Inventory
//! - `shards`: `ls`, `pack` and `index`
//! - `store_check`: stores that compare ETags before and after they authorize a request

#[cfg(test)]
mod it {
    mod aws;
    mod broken_answers;
    mod cli;
    mod endpoints;
    mod engines;
    mod explain;
    mod explain_models;
    mod families;
    mod hidden_objects;
    mod hostile_text;
    mod inventory;
    mod materialize;
    mod outages;
    mod output_files;
    mod placement;
    mod read_members;
    mod read_shards;
    mod result_cache;
    mod shards;
    mod store_check;
    mod table_faults;
    mod tables;
    mod value_cache_claims;
    mod value_cache_reasons;
    mod warnings;
    mod weights;
}
