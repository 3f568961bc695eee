//! Records that a device's rings write to shared memory: the log of written pages, for migration,
//! and the in-flight record, which another process reads if this one dies.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use suimon_ring::{DirtyLog, InflightLayout, InflightRegion, RingFeatures, RingLog, RingTracking};

use crate::fault::DeviceFault;
use crate::features::protocol;
use crate::message::{InflightInfo, LogInfo};
use crate::reply::VhostUserReply;

/// Log of written pages and in-flight record, as far as the front-end has provided them.
#[derive(Default)]
pub(crate) struct DeviceTracking {
    log: Option<Arc<DirtyLog>>,
    inflight: Option<Arc<InflightRegion>>,
}

impl DeviceTracking {
    /// Sets the log of written pages. Rings use it while the feature `VHOST_F_LOG_ALL` is
    /// negotiated.
    pub(crate) fn set_log(&mut self, info: LogInfo, fd: &OwnedFd) -> Result<(), DeviceFault> {
        self.log = None;
        let log = DirtyLog::map(fd.as_fd(), info.mmap_offset, info.size)
            .map_err(|source| DeviceFault::Log { source })?;
        self.log = Some(Arc::new(log));
        Ok(())
    }

    /// Creates an empty in-flight record, which the front-end keeps and passes back after a
    /// reconnect.
    pub(crate) fn new_inflight(
        info: InflightInfo,
        features: RingFeatures,
    ) -> Result<VhostUserReply, DeviceFault> {
        let layout = inflight_layout(info, features);
        let (_, file) =
            InflightRegion::create(layout).map_err(|source| DeviceFault::Inflight { source })?;
        let info = InflightInfo { size: layout.bytes(), mmap_offset: 0, ..info };
        Ok(VhostUserReply::Inflight(info, Arc::new(file)))
    }

    /// Sets the in-flight record that rings use from now on.
    pub(crate) fn set_inflight(
        &mut self,
        info: InflightInfo,
        fd: &OwnedFd,
        features: RingFeatures,
    ) -> Result<(), DeviceFault> {
        self.inflight = None;
        let InflightInfo { size, mmap_offset, .. } = info;
        let inflight =
            InflightRegion::map(fd.as_fd(), mmap_offset, size, inflight_layout(info, features))
                .map_err(|source| DeviceFault::Inflight { source })?;
        self.inflight = Some(inflight);
        Ok(())
    }

    /// Clears the in-flight record and drops the log, because the device is reset.
    pub(crate) fn reset(&mut self) {
        if let Some(inflight) = &self.inflight {
            inflight.clear();
        }
        self.log = None;
    }

    /// Returns the records that vring `index` with `size` entries writes. `used_addr` is the
    /// address under which writes to its used ring are logged. A ring larger than the in-flight
    /// record has none: firmware creates larger rings than QEMU requested (SeaBIOS of Debian 13:
    /// 256 instead of 128), and requests during the VM's boot need not be repeated by the next
    /// process.
    pub(crate) fn ring_tracking(
        &self,
        (index, size): (u16, u32),
        features: RingFeatures,
        used_addr: Option<u64>,
    ) -> RingTracking {
        let log = self.log.as_ref().filter(|_| features.has(protocol::LOG_ALL_BIT));
        RingTracking {
            log: log.map(|log| RingLog { log: Arc::clone(log), used_addr }),
            inflight: self
                .inflight
                .as_ref()
                .filter(|inflight| u32::from(inflight.layout().queue_size) >= size)
                .and_then(|inflight| inflight.queue(index)),
        }
    }

    /// Returns the number of writes to pages for which the log has no bit.
    pub(crate) fn log_out_of_range_writes(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.out_of_range_writes())
    }
}

fn inflight_layout(info: InflightInfo, features: RingFeatures) -> InflightLayout {
    InflightLayout {
        queues: info.queues,
        queue_size: info.queue_size,
        is_packed: features.packed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_larger_than_the_record_keeps_none() {
        let features = RingFeatures(0);
        let request =
            InflightInfo { size: 0, mmap_offset: 0, queues: 1, queue_size: 128, wire_bytes: 24 };
        let VhostUserReply::Inflight(info, file) =
            DeviceTracking::new_inflight(request, features).unwrap()
        else {
            panic!("no record");
        };
        let mut records = DeviceTracking::default();
        records.set_inflight(info, &file, features).unwrap();
        let has_record = |size| records.ring_tracking((0, size), features, None).inflight.is_some();
        assert!(has_record(128) && has_record(64));
        assert!(!has_record(256));
    }
}
