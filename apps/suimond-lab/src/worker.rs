//! Lab worker: its heartbeat and its plans.

use suimon_contract::{ApiError, LabPlan};
use suimon_lab_run::folder::{
    PLANS_FILE, REQUEST_SERVER_STATUS_FILE, RequestServerStatus, is_valid_id,
};

use crate::folder::Folder;
use crate::json_file::{SMALL_FILE_BYTES_MAX, read};

/// Age of the worker's last heartbeat, in ms, above which the worker counts as absent.
const WORKER_AGE_MS_MAX: u64 = 10_000;
const PLANS_MAX: usize = 256;

/// Returns the worker if one is running.
pub(crate) fn find_running_worker(
    folder: &Folder,
    now_ms: u64,
) -> Result<Option<RequestServerStatus>, ApiError> {
    let Some(worker) =
        read::<RequestServerStatus>(folder, REQUEST_SERVER_STATUS_FILE, SMALL_FILE_BYTES_MAX)?
    else {
        return Ok(None);
    };
    Ok(Some(worker).filter(|worker| now_ms.abs_diff(worker.updated_unix_ms) <= WORKER_AGE_MS_MAX))
}

pub(crate) fn read_plans(folder: &Folder) -> Result<Vec<LabPlan>, ApiError> {
    let mut plans: Vec<LabPlan> =
        read(folder, PLANS_FILE, SMALL_FILE_BYTES_MAX)?.unwrap_or_default();
    plans.truncate(PLANS_MAX);
    plans.retain(|plan| is_valid_id(&plan.id));
    Ok(plans)
}
