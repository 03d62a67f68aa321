//! Where the steps of a reader run.

use serde::{Deserialize, Serialize};

/// Where the steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The prefix runs at the gateway, the suffix on this host.
    #[default]
    Pushdown,
    /// A plan chooses the split per object. The first batches try both routes and measure the costs on this host, at the
    /// gateway and on the link. The plan follows from them and changes with them. Plain reading is one possible plan.
    Auto,
    /// Everything runs on this host: objects are read directly, from a gateway or from any store.
    Plain,
}
