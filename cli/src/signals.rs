//! Ctrl-C and the like, while a command writes a file.

use std::{fs, process};

use tokio::signal::unix::{SignalKind, signal};

/// What ends a process, unless the process that started it has it ignored.
const SIGNALS: [fn() -> SignalKind; 3] = [SignalKind::interrupt, SignalKind::terminate, SignalKind::hangup];

/// From now on, a signal that ends this process removes its drafts first. Called in the runtime of a command.
///
/// A command may compute for seconds between two of its awaits, so this does not wait for it: another thread of the runtime ends the process.
#[expect(clippy::exit, reason = "the signal asked for it")]
pub(crate) fn remove_drafts_at_end() {
    let ignored = ignored_signals();
    for kind in SIGNALS.map(|kind| kind()) {
        let number = kind.as_raw_value();
        if ignored >> (number - 1) & 1 == 1 {
            continue;
        }
        // Without a handler, the signal ends the process without removing them.
        let Ok(mut signals) = signal(kind) else { continue };
        tokio::spawn(async move {
            if signals.recv().await.is_some() {
                pushdown_client::internal::remove_drafts();
                // As a shell reports a process that a signal ended.
                process::exit(128 + number);
            }
        });
    }
}

/// A bit for each signal that is ignored, such as that of a hangup by `nohup`.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
