//! Reads of the store, and conversion of etcd's key-value pairs.

use etcd_client::{GetOptions, KeyValue, SortOrder, SortTarget};
use suimon_ports::{ClusterEntry, ClusterStoreError, ClusterView};

use crate::members::Members;

/// Maximum size in bytes of a response. The default of gRPC, 4 MB, is exceeded by the grants and
/// reports of some thousand pairs of a node and a store, and by what a watch has missed meanwhile.
pub(crate) const RESPONSE_BYTES_MAX: usize = 64 << 20;

pub(crate) fn decode_entry(pair: &KeyValue) -> ClusterEntry {
    ClusterEntry {
        key: String::from_utf8_lossy(pair.key()).into_owned(),
        value: pair.value().to_vec(),
        created_revision: decode_revision(pair.create_revision()),
        modified_revision: decode_revision(pair.mod_revision()),
    }
}

pub(crate) fn decode_revision(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or_default()
}

pub(crate) async fn read_view(
    members: &Members,
    prefix: &str,
) -> Result<ClusterView, ClusterStoreError> {
    let answer = members
        .request(false, |client| async move {
            let options =
                GetOptions::new().with_prefix().with_sort(SortTarget::Key, SortOrder::Ascend);
            let mut client = client.kv_client().max_decoding_message_size(RESPONSE_BYTES_MAX);
            client.get(prefix, Some(options)).await
        })
        .await?;
    let number = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
    Ok(ClusterView {
        revision: decode_revision(number),
        entries: answer.kvs().iter().map(decode_entry).collect(),
    })
}
