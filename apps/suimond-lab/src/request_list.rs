//! List of requests for runs.

use std::collections::BTreeSet;

use suimon_contract::{ApiError, LabRequest, LabRequestState, LabScale};
use suimon_lab_run::folder::{
    REQUESTS_FOLDER, RequestResult, RequestServerStatus, RunRequest, is_valid_id,
};

use crate::folder::Folder;
use crate::json_file::{SMALL_FILE_BYTES_MAX, read};

/// Largest accepted request file in bytes.
const REQUEST_BYTES_MAX: u64 = 4096;
const REQUESTS_SHOWN_MAX: usize = 64;

pub(crate) fn is_unfinished(state: LabRequestState) -> bool {
    use LabRequestState::{InProgress, Queued, Stopping};
    matches!(state, Queued | InProgress | Stopping)
}

/// Returns the requests, oldest first.
pub(super) fn list(
    folder: &Folder,
    worker: Option<&RequestServerStatus>,
) -> Result<Vec<LabRequest>, ApiError> {
    let Some(requests) = folder.open_subfolder(REQUESTS_FOLDER)? else { return Ok(Vec::new()) };
    let names = requests.entry_names()?;
    let ids: BTreeSet<&str> = names.iter().filter_map(|name| id_of(name)).collect();
    let latest = ids.into_iter().rev().take(REQUESTS_SHOWN_MAX);
    let mut requests: Vec<LabRequest> = latest
        .filter_map(|id| read_request(&requests, id, worker).transpose())
        .collect::<Result<_, _>>()?;
    requests.reverse();
    Ok(requests)
}

/// Returns the id of a request from the name of its file, `ID.json` or `ID.done`; `None` for other
/// names.
fn id_of(name: &str) -> Option<&str> {
    let id = name.strip_suffix(".json").or_else(|| name.strip_suffix(".done"))?;
    let is_time = id.bytes().all(|byte| byte.is_ascii_digit());
    (is_valid_id(id) && is_time).then_some(id)
}

/// Reads one request; `None` if it was removed in the meantime.
pub(crate) fn read_request(
    requests: &Folder,
    id: &str,
    worker: Option<&RequestServerStatus>,
) -> Result<Option<LabRequest>, ApiError> {
    let mut lab_request = LabRequest {
        id: id.to_owned(),
        plan: None,
        scale: None,
        state: LabRequestState::Failed,
        run_id: None,
        error: None,
    };
    let result = match read::<RequestResult>(requests, &format!("{id}.done"), SMALL_FILE_BYTES_MAX)
    {
        Ok(result) => result,
        Err(error) => {
            lab_request.error = Some(error.to_string());
            return Ok(Some(lab_request));
        }
    };
    if let Some(result) = result {
        if result.error.is_none() {
            lab_request.state = LabRequestState::Done;
        }
        lab_request.run_id = result.run_id.filter(|run| is_valid_id(run));
        lab_request.error = result.error;
        return Ok(Some(lab_request));
    }
    match read::<RunRequest>(requests, &format!("{id}.json"), REQUEST_BYTES_MAX) {
        Ok(None) => return Ok(None),
        Ok(Some(request)) => {
            let scales = [LabScale::Auto, LabScale::Quick, LabScale::Full];
            lab_request.scale = scales.into_iter().find(|scale| scale.as_str() == request.scale);
            lab_request.plan = Some(request.plan_id).filter(|plan| is_valid_id(plan));
        }
        Err(error) => lab_request.error = Some(error.to_string()),
    }
    let worker = worker.filter(|current_worker| current_worker.request.as_deref() == Some(id));
    lab_request.run_id =
        worker.and_then(|current_worker| current_worker.run.clone()).filter(|run| is_valid_id(run));
    lab_request.state = if requests.contains_entry(&format!("{id}.stop"))? {
        LabRequestState::Stopping
    } else if worker.is_some() {
        LabRequestState::InProgress
    } else {
        LabRequestState::Queued
    };
    Ok(Some(lab_request))
}
