//! Integration tests: the reader and the command line with the real gateway on its embedded store.
//!
//! - `order`: each sample once, in the seeded order; shards, resuming, epochs, `take`
//! - `splits`: law 1: plain reading and every split agree bit for bit
//! - `rows`: rows of Parquet objects as samples
//! - `errors`: bad samples, endpoints that are not gateways
//! - `faults`: restarts, overload, truncated answers, another engine
//! - `engines`: a gateway with another version of ONNX Runtime
//! - `families`: a gateway with older versions of some steps
//! - `outages`: what the command line logs about outages
//! - `listing`: listings of many pages
//! - `stats`: the counters of the reader, compared with the metrics of the gateway
//! - `value_cache`: values cached in a folder
//! - `value_cache_reasons`: why values are not cached
//! - `auto`: plans that adapt to observations
//! - `external_models`: models with weights in external files
//! - `models`: models at the gateway, on the host, and split between both
//! - `weights`: fetching the weights of models
//! - `wide_models`: models with intermediate values larger than the objects
//! - `quantized_features`: model outputs as bf16 and int8
//! - `warnings`: warnings of the command line about models
//! - `cli`: the binary
//! - `output_files`: the format of output files by their extension
//! - `explain`: plans for tiers that share CPUs
//! - `tables`: the binary on tables
//! - `table_faults`: tables of stores that change or misbehave while they are read
//! - `placement`: local or remote scans of tables, by the link rate
//! - `demo`: the demonstrations of the binary
//! - `demo_model`: the demonstration with the features of a real model
//!
//! Support modules: `world` (a gateway with objects), `relay` (a faulty proxy), `throttle` (a link of limited rate).

#[cfg(test)]
mod it {
    mod auto;
    mod cli;
    mod demo;
    mod demo_model;
    mod engines;
    mod errors;
    mod explain;
    mod external_models;
    mod families;
    mod faults;
    mod listing;
    mod models;
    mod order;
    mod outages;
    mod output_files;
    mod placement;
    mod quantized_features;
    mod relay;
    mod rows;
    mod splits;
    mod stats;
    mod table_faults;
    mod tables;
    mod throttle;
    mod value_cache;
    mod value_cache_reasons;
    mod warnings;
    mod weights;
    mod wide_models;
    mod world;
}
