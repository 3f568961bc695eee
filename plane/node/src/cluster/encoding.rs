//! Encoding of values in the cluster's store.

use serde::Serialize;
use serde::de::DeserializeOwned;
use suimon_ports::ClusterEntry;

/// Returns the value of an entry; `None` if it is invalid.
pub(super) fn decode_entry<T: DeserializeOwned>(entry: &ClusterEntry) -> Option<T> {
    serde_json::from_slice(&entry.value)
        .inspect_err(|error| {
            tracing::warn!(key = entry.key, %error, "the value of an etcd key cannot be read");
        })
        .ok()
}

/// Returns the present value of a counter and the next one; 1 and 2 if it has no entry yet. Returns
/// `None` if the value is invalid, or the last one.
pub(super) fn decode_counter(entry: Option<&ClusterEntry>) -> Option<(u32, u32)> {
    let number = entry.map_or(Some(1), decode_entry::<u32>)?;
    Some((number, number.checked_add(1)?))
}

/// Serializes a value. Plain values cannot fail.
pub(super) fn encode_value<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
