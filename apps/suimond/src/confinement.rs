//! Confinement of the daemon: setup at the start, status, and monitoring of refused calls.

use std::sync::Arc;
use std::time::Duration;

use suimon_confine::{Confinement, ConfinementReport, LandlockEffect, LayerReport};
use suimon_contract::{ConfinementMode, ConfinementStatus, ThreadConfinement};
use suimon_node::{DeniedCall, Node};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Shortest interval of events about refused calls.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Returns the restrictions in effect as an API type.
pub(crate) fn status(confinement: &Confinement) -> ConfinementStatus {
    confinement_status(&confinement.report())
}

fn confinement_status(report: &ConfinementReport) -> ConfinementStatus {
    let missing: Vec<String> = report.missing_features().into_iter().map(str::to_owned).collect();
    let mode = match (report.is_off, missing.is_empty()) {
        (true, _) => ConfinementMode::Off,
        (false, true) => ConfinementMode::Full,
        (false, false) => ConfinementMode::Partial,
    };
    let layers =
        report.layers().map(|(threads, layer)| confinement_layer(threads, layer)).collect();
    ConfinementStatus {
        mode,
        missing,
        thread_confinements: layers,
        refused_calls: report.rejected_calls,
    }
}

fn confinement_layer(threads: &str, layer: &LayerReport) -> ThreadConfinement {
    let system_calls = match (layer.is_filtered, threads) {
        (false, _) => "all".to_owned(),
        (true, "process") => format!("all but {}", layer.listed_calls),
        (true, _) => format!("{} allowed", layer.listed_calls),
    };
    let landlock = match layer.landlock {
        LandlockEffect::Full { abi } => format!("full, version {abi}"),
        LandlockEffect::Partial { abi } => format!("partial, version {abi}"),
        LandlockEffect::Off => "off".to_owned(),
    };
    ThreadConfinement {
        thread_kind: threads.to_owned(),
        capabilities: layer.capabilities.iter().map(|name| (*name).to_owned()).collect(),
        system_calls,
        landlock,
    }
}

/// Emits events about refused system calls of the daemon's threads, at most one per [`TOLD_EVERY`].
/// Runs until dropped.
pub(crate) async fn report_refused_calls(confinement: Confinement, node: Arc<Node>) {
    let pipe = suimon_confine::refusal_pipe()
        .and_then(|pipe| pipe.map(Receiver::from_owned_fd).transpose());
    let mut pipe = match pipe {
        Ok(Some(pipe)) => pipe,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, "denied system calls are counted but not reported");
            return;
        }
    };
    // The count is read after the pipe's bytes, so that no call is missed.
    while pipe.read(&mut [0; 4096]).await.is_ok_and(|bytes| bytes > 0) {
        if let Some(last) = confinement.rejected_calls() {
            let denied = DeniedCall {
                call: last.last_call,
                thread_kind: last.thread_kind.to_owned(),
                thread_id: last.thread_id,
                count: last.count,
            };
            let node = Arc::clone(&node);
            let _ = tokio::task::spawn_blocking(move || node.report_denied_call(&denied)).await;
        }
        tokio::time::sleep(TOLD_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_full_only_if_nothing_is_lacking() {
        let layer = LayerReport {
            capabilities: Vec::new(),
            is_bounding_set_empty: true,
            is_filtered: true,
            listed_calls: 40,
            landlock: LandlockEffect::Full { abi: 7 },
        };
        let mut report =
            ConfinementReport { workers: Some(layer.clone()), ..ConfinementReport::default() };
        let full = confinement_status(&report);
        assert_eq!((full.mode, full.missing.len()), (ConfinementMode::Full, 0));
        assert_eq!(full.thread_confinements[0].system_calls, "40 allowed");
        assert_eq!(full.thread_confinements[0].landlock, "full, version 7");

        report.process = Some(LayerReport {
            capabilities: vec!["CAP_NET_ADMIN"],
            landlock: LandlockEffect::Off,
            ..layer
        });
        let partial = confinement_status(&report);
        assert_eq!((partial.mode, partial.missing.len()), (ConfinementMode::Partial, 1));
        assert!(partial.missing[0].contains("Landlock"), "{partial:?}");
        assert_eq!(partial.thread_confinements[0].system_calls, "all but 40");

        assert_eq!(status(&Confinement::off()).mode, ConfinementMode::Off);
    }
}
