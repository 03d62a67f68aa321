//! Integration tests: the gateway binary runs as its own process, with real and faulty object stores as its origin.
//!
//! - `parity`: the same signed bytes get the same answer from the store and through the gateway
//! - `pipeline`: GET with a pipeline, batches, tables, models, their refusals and limits
//! - `uploads`: `Expect`, early refusals, large bodies in constant memory, clients that disconnect
//! - `faults`: a store that is down, slow, or disconnects in the middle of its answer
//! - `smuggling`: request smuggling by framing headers that do not match the bytes sent
//! - `resign`: re-sign mode, where the gateway verifies callers, decides by their grants, and signs again for the store
//! - `sessions`: temporary credentials of the store pass through in forward mode
//! - `stores`: readers that sign for a store which their requests state
//! - `targets`: requests refused before the store is asked, and requests forwarded unchanged
//! - `lifecycle`: start, readiness, drain
//! - `connections`: silent and slow connections of any number leave slots to others
//! - `embedded_conditions`, `embedded_store`: conditions of requests to the embedded store, its listings and its keys
//! - `cli`: help, configuration errors, unknown keys
//! - `admin`: health, metrics, status
//! - `probes`: a gateway without a free connection or with other work is not taken for a dead one
//! - `version`: the version of the gateway, for every caller and at any time
//! - `replica`: the id of a gateway among its replicas, in its own answers and after a restart
//! - `reference`: the generated pages of settings and metrics

mod it {
    mod admin;
    mod cli;
    mod connections;
    mod embedded_conditions;
    mod embedded_store;
    mod faults;
    mod lifecycle;
    mod parity;
    mod pipeline;
    mod probes;
    mod reference;
    mod replica;
    mod resign;
    mod sessions;
    mod smuggling;
    mod stores;
    mod targets;
    mod tls;
    mod uploads;
    mod version;

    use std::path::Path;

    use pushdown_testkit::{Gateway, ScriptedOrigin};

    /// The binary under test.
    fn binary() -> &'static Path {
        Path::new(env!("CARGO_BIN_EXE_pushdown-gateway"))
    }

    /// Launches a gateway with a scripted store as its origin and these additional flags.
    fn gateway_for(origin: &ScriptedOrigin, flags: &[&str]) -> anyhow::Result<Gateway> {
        let upstream = format!("--upstream=http://{}", origin.address());
        Gateway::launch(binary(), [&[upstream.as_str()], flags].concat())
    }
}
