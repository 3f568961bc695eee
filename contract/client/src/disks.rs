//! Operations on the file of a disk.

use hyper::Method;
use suimon_contract::{ConvertDiskRequest, DiskConfig, Name, Operation, SnapshotDiskRequest};

use crate::resources::{json_body, resource_path};
use crate::transport::{self, ApiRequest};
use crate::{Client, ClientError};

/// Methods that each return the started operation. Each fails with [`ClientError`].
impl Client {
    /// Checks the disk's file for damage. The operation's report contains the result.
    pub async fn check_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "check", None).await
    }

    /// Compacts the disk's file: releases unused space to its store.
    pub async fn compact_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "compact", None).await
    }

    /// Merges the differencing file of a disk into its parent, which becomes the disk's file.
    pub async fn merge_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "merge", None).await
    }

    /// Closes the disk's image and opens it again. After a failed flush, this enables writes and
    /// flushes again. Clients of the disk see a pause.
    pub async fn reopen_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "reopen", None).await
    }

    /// Copies the disk to another file of its store.
    pub async fn convert_disk(
        &self,
        disk: &Name,
        request: &ConvertDiskRequest,
    ) -> Result<Operation, ClientError> {
        self.work_on(disk, "convert", Some(json_body(request)?)).await
    }

    /// Takes a snapshot of the disk; later writes go to a new file.
    pub async fn snapshot_disk(
        &self,
        disk: &Name,
        request: &SnapshotDiskRequest,
    ) -> Result<Operation, ClientError> {
        self.work_on(disk, "snapshot", Some(json_body(request)?)).await
    }

    async fn work_on(
        &self,
        disk: &Name,
        verb: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Operation, ClientError> {
        let mut call =
            ApiRequest::new(Method::POST, format!("{}/{verb}", resource_path::<DiskConfig>(disk)));
        call.body = body;
        transport::fetch_json(self, call).await
    }
}
