//! Requests for runs: written by the daemon, carried out by the lab worker.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use suimon_contract::{ApiError, ErrorCode, LabRequest, LabRequestState, LabRunRequest, LabScale};
use suimon_lab_run::folder::{REQUESTS, RequestResult, RunRequest, Worker, is_id};

use super::{Folder, Lab, SMALL_BYTES_MAX, plans, read, shown_id, worker};

/// Largest accepted request file in bytes.
const REQUEST_BYTES_MAX: u64 = 4096;
/// Largest number of queued requests, and of listed requests.
const WAITING_MAX: usize = 16;
const REQUESTS_SHOWN_MAX: usize = 64;

impl Lab {
    /// Requests a run.
    ///
    /// # Errors
    /// No worker is running, the plan does not exist, this machine does not meet the plan's
    /// requirements, or too many requests are queued.
    pub fn request(&self, now_ms: u64, wanted: &LabRunRequest) -> Result<LabRequest, ApiError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let refuse = |code, text: String| Err(ApiError::new(code, text).about("lab"));
        let folder = Folder::open(&self.results)?;
        let worker = folder.as_ref().map(|of| worker(of, now_ms)).transpose()?.flatten();
        let (Some(folder), Some(worker)) = (folder, worker) else {
            return refuse(ErrorCode::Unsupported, self.remedy());
        };
        let plans = plans(&folder)?;
        let Some(plan) = plans.iter().find(|plan| plan.id == wanted.plan) else {
            let known: Vec<&str> = plans.iter().map(|plan| plan.id.as_str()).collect();
            let text = format!(
                "there is no plan `{}`; the plans are {}",
                shown_id(&wanted.plan),
                known.join(", ")
            );
            return Err(ApiError::new(ErrorCode::UnknownReference, text)
                .about("lab")
                .field("plan"));
        };
        let at_scale = plan.scales.iter().find(|of| of.scale == wanted.scale);
        let missing: Vec<&str> =
            at_scale.iter().flat_map(|of| &of.missing).map(|of| of.en.as_str()).collect();
        if !missing.is_empty() {
            let scale = wanted.scale.as_str();
            let text = format!(
                "this machine lacks resources for {} at scale `{scale}`: {}",
                plan.id,
                missing.join("; ")
            );
            return refuse(ErrorCode::Unsupported, text);
        }
        let Some(requests) = folder.folder(REQUESTS)? else {
            return refuse(ErrorCode::Unsupported, self.remedy());
        };
        let is_open = |of: &LabRequest| is_open(of.state);
        let open = list(&folder, Some(&worker))?.into_iter().filter(is_open).count();
        if open >= WAITING_MAX {
            let text = format!(
                "{open} runs are queued already; withdraw one, or wait until one has ended"
            );
            return refuse(ErrorCode::Conflict, text);
        }
        let request = RunRequest {
            plan: wanted.plan.clone(),
            scale: wanted.scale.as_str().to_owned(),
            profile: wanted.profile,
        };
        let bytes = serde_json::to_vec(&request)
            .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()).about("lab"))?;
        // A second request in the same millisecond takes the next free number.
        for number in now_ms..now_ms.saturating_add(WAITING_MAX as u64) {
            let id = format!("{number:013}");
            if !requests.has(&format!("{id}.done"))?
                && requests.write_new(&format!("{id}.json"), &bytes)?
            {
                return Ok(LabRequest {
                    id,
                    plan: Some(request.plan),
                    scale: Some(wanted.scale),
                    state: LabRequestState::Waiting,
                    run: None,
                    error: None,
                });
            }
        }
        refuse(ErrorCode::Conflict, "too many requests at a time; retry".to_owned())
    }

    /// Withdraws a queued request, or cancels the run of one in progress. A request that has ended
    /// is unchanged.
    ///
    /// # Errors
    /// The request does not exist, or a file cannot be written.
    pub fn withdraw(&self, now_ms: u64, id: &str) -> Result<LabRequest, ApiError> {
        let lacking = || {
            let text = "there is no such request; `GET /1.0/lab` lists the pending, running and \
                        last ended ones";
            ApiError::new(ErrorCode::NotFound, text).about(format!("lab/{}", shown_id(id)))
        };
        let folder = Folder::open(&self.results)?.ok_or_else(lacking)?;
        let worker = worker(&folder, now_ms)?;
        let all = list(&folder, worker.as_ref())?;
        let mut found = all.into_iter().find(|of| of.id == id).ok_or_else(lacking)?;
        let requests = folder.folder(REQUESTS)?.ok_or_else(lacking)?;
        if !is_open(found.state) {
            return Ok(found);
        }
        if worker.is_none() && !requests.is_held()? {
            // No worker reads the folder.
            requests.remove(&format!("{id}.json"))?;
            requests.remove(&format!("{id}.stop"))?;
            found.state = LabRequestState::Failed;
            found.error = Some("withdrawn before it started".to_owned());
            return Ok(found);
        }
        requests.write_new(&format!("{id}.stop"), b"")?;
        found.state = LabRequestState::Stopping;
        Ok(found)
    }
}

fn is_open(state: LabRequestState) -> bool {
    use LabRequestState::{Stopping, UnderWay, Waiting};
    matches!(state, Waiting | UnderWay | Stopping)
}

/// Returns the requests, oldest first.
pub(super) fn list(folder: &Folder, worker: Option<&Worker>) -> Result<Vec<LabRequest>, ApiError> {
    let Some(requests) = folder.folder(REQUESTS)? else { return Ok(Vec::new()) };
    let names = requests.names()?;
    let ids: BTreeSet<&str> = names.iter().filter_map(|name| id_of(name)).collect();
    let latest = ids.into_iter().rev().take(REQUESTS_SHOWN_MAX);
    let mut all: Vec<LabRequest> = latest
        .filter_map(|id| request(&requests, id, worker).transpose())
        .collect::<Result<_, _>>()?;
    all.reverse();
    Ok(all)
}

/// Returns the id in `ID.json` and `ID.done`.
fn id_of(name: &str) -> Option<&str> {
    let id = name.strip_suffix(".json").or_else(|| name.strip_suffix(".done"))?;
    let is_time = id.bytes().all(|byte| byte.is_ascii_digit());
    (is_id(id) && is_time).then_some(id)
}

/// Reads one request; `None` if it was removed in the meantime.
fn request(
    requests: &Folder,
    id: &str,
    worker: Option<&Worker>,
) -> Result<Option<LabRequest>, ApiError> {
    let mut status = LabRequest {
        id: id.to_owned(),
        plan: None,
        scale: None,
        state: LabRequestState::Failed,
        run: None,
        error: None,
    };
    let done = match read::<RequestResult>(requests, &format!("{id}.done"), SMALL_BYTES_MAX) {
        Ok(done) => done,
        Err(error) => {
            status.error = Some(error.to_string());
            return Ok(Some(status));
        }
    };
    if let Some(done) = done {
        if done.error.is_none() {
            status.state = LabRequestState::Done;
        }
        status.run = done.run.filter(|run| is_id(run));
        status.error = done.error;
        return Ok(Some(status));
    }
    match read::<RunRequest>(requests, &format!("{id}.json"), REQUEST_BYTES_MAX) {
        Ok(None) => return Ok(None),
        Ok(Some(of)) => {
            let scales = [LabScale::Auto, LabScale::Quick, LabScale::Full];
            status.scale = scales.into_iter().find(|scale| scale.as_str() == of.scale);
            status.plan = Some(of.plan).filter(|plan| is_id(plan));
        }
        Err(error) => status.error = Some(error.to_string()),
    }
    let worker = worker.filter(|of| of.request.as_deref() == Some(id));
    status.run = worker.and_then(|of| of.run.clone()).filter(|run| is_id(run));
    status.state = if requests.has(&format!("{id}.stop"))? {
        LabRequestState::Stopping
    } else if worker.is_some() {
        LabRequestState::UnderWay
    } else {
        LabRequestState::Waiting
    };
    Ok(Some(status))
}
