//! The real gateway, as its own process, in front of real and of faulty stores.
//!
//! - `parity`: the same signed bytes to the store and through the gateway, the same answer
//! - `pipeline`: GET with a pipeline, batches, what they refuse and what bounds them
//! - `uploads`: `Expect`, early refusals, big bodies in constant memory, clients that leave
//! - `faults`: a store that is down, slow, or lost in the middle of its answer
//! - `smuggling`: framing that one end declares and the other does not send
//! - `targets`: what is refused before any store is asked
//! - `lifecycle`: start, readiness, drain
//! - `cli`: help, faults of a configuration, unknown keys
//! - `admin`: health, metrics, status

mod it {
    mod admin;
    mod cli;
    mod faults;
    mod lifecycle;
    mod parity;
    mod pipeline;
    mod smuggling;
    mod targets;
    mod uploads;

    use std::path::Path;

    use pushdown_testkit::{Gateway, ScriptedOrigin};

    /// The binary under test.
    fn binary() -> &'static Path {
        Path::new(env!("CARGO_BIN_EXE_pushdown-gateway"))
    }

    /// A gateway in front of a scripted store, with these flags besides.
    fn in_front_of(origin: &ScriptedOrigin, flags: &[&str]) -> anyhow::Result<Gateway> {
        let upstream = format!("--upstream=http://{}", origin.address());
        Gateway::launch(binary(), [&[upstream.as_str()], flags].concat())
    }
}
