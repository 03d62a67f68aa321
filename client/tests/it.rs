//! The reader and the command line against the real gateway on its embedded store.
//!
//! - `order`: each sample once, in the seeded order; shards, resuming, epochs, `take`
//! - `splits`: law 1: plain and every split agree bit for bit
//! - `errors`: bad samples, endpoints that are no gateway
//! - `faults`: restarts, overload, answers that are cut, another engine
//! - `engines`: another version of what runs models
//! - `outages`: what is said of them
//! - `listing`: page by page
//! - `stats`: what is counted, against the gateway's own metrics
//! - `keep`: values that are kept in a folder
//! - `keep_reasons`: why others are not
//! - `auto`: plans that follow what happens
//! - `external_models`: weights in files beside the model
//! - `models`: layers at the gateway, here, and on both sides
//! - `weights`: on their way, and of no use
//! - `wide_models`: values inside of models that have more bytes than the objects
//! - `forms`: values behind layers as rounded numbers and codes
//! - `warnings`: what the command line says of models
//! - `cli`: the binary
//! - `names`: files that it writes, by their endings
//! - `explain`: plans where both sides have the same CPUs
//! - `tables`: the binary on tables
//! - `mixture`: tables of stores that change while they are read
//! - `place`: where the rows of tables are made, by the link's rate
//! - `demo`: its demonstrations
//! - `demo_model`: on the features of a real model

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
    mod faults;
    mod forms;
    mod keep;
    mod keep_reasons;
    mod listing;
    mod mixture;
    mod models;
    mod names;
    mod order;
    mod outages;
    mod place;
    mod relay;
    mod rows;
    mod splits;
    mod stats;
    mod tables;
    mod throttle;
    mod warnings;
    mod weights;
    mod wide_models;
    mod world;
}
