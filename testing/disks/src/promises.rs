//! Negotiated features that a reconnecting VM depends on, stored across the death of the process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use suimon_ports::{DeviceNotice, DiskObserver, NegotiatedFeatures};
use suimon_quantity::DiskId;

/// Stores the negotiated features in a file, and prints each change.
#[derive(Debug)]
pub struct NegotiatedFeaturesFile {
    file: Option<PathBuf>,
    last: Mutex<NegotiatedFeatures>,
}

impl NegotiatedFeaturesFile {
    /// Reads the negotiated features from the file, if it exists.
    ///
    /// # Errors
    /// The file cannot be read or has a different format.
    pub fn kept_in(file: Option<&Path>) -> Result<Self> {
        let last = match file.filter(|file| file.exists()) {
            Some(file) => parse(&std::fs::read_to_string(file)?)
                .with_context(|| format!("{} is no promise", file.display()))?,
            None => NegotiatedFeatures::default(),
        };
        Ok(Self { file: file.map(Path::to_owned), last: Mutex::new(last) })
    }

    /// Returns the features negotiated last.
    #[must_use]
    pub fn last(&self) -> NegotiatedFeatures {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the file atomically, so that it is complete if the process dies.
    fn write(&self, promise: NegotiatedFeatures) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let new_file = file.with_extension("new");
        std::fs::write(&new_file, format!("{} {}\n", promise.features, promise.queue_pairs))?;
        std::fs::rename(new_file, file)
    }
}

fn parse(text: &str) -> Option<NegotiatedFeatures> {
    let (features, queues) = text.trim().split_once(' ')?;
    Some(NegotiatedFeatures { features: features.parse().ok()?, queue_pairs: queues.parse().ok()? })
}

impl DiskObserver for NegotiatedFeaturesFile {
    fn handle_notice(&self, _: DiskId, notice: DeviceNotice) {
        println!("{notice:?}");
        if let DeviceNotice::FeaturesCommitted(promise) = notice {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = promise;
            if let Err(error) = self.write(promise) {
                println!("the promise is not kept: {error}");
            }
        }
    }
}
