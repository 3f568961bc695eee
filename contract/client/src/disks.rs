//! What can be done to the file of a disk.

use hyper::Method;
use suimon_contract::{ConvertDiskRequest, DiskConfig, Name, Operation, SnapshotDiskRequest};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// Every method gives the operation that was started, and fails with [`ClientError`].
impl Client {
    /// Looks whether the disk's file is sound. What was found is in the operation's report.
    pub async fn check_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "check", None).await
    }

    /// Gives space that the disk's file does not need back to its store.
    pub async fn compact_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "compact", None).await
    }

    /// Writes what is in the differencing file of a disk into its parent, which is the
    /// disk's file then.
    pub async fn merge_disk(&self, disk: &Name) -> Result<Operation, ClientError> {
        self.work_on(disk, "merge", None).await
    }

    /// Copies the disk to another file of its store.
    pub async fn convert_disk(
        &self,
        disk: &Name,
        request: &ConvertDiskRequest,
    ) -> Result<Operation, ClientError> {
        self.work_on(disk, "convert", Some(body(request)?)).await
    }

    /// Keeps what the disk has now; what is written from now on goes to a new file.
    pub async fn snapshot_disk(
        &self,
        disk: &Name,
        request: &SnapshotDiskRequest,
    ) -> Result<Operation, ClientError> {
        self.work_on(disk, "snapshot", Some(body(request)?)).await
    }

    async fn work_on(
        &self,
        disk: &Name,
        verb: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Operation, ClientError> {
        let mut call = Call::new(Method::POST, format!("{}/{verb}", item::<DiskConfig>(disk)));
        call.body = body;
        transport::json(self, call).await
    }
}
