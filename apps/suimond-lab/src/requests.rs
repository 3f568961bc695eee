//! Requests for runs: written by the daemon, carried out by the lab worker.

use std::sync::PoisonError;

use suimon_contract::{ApiError, ErrorCode, LabRequest, LabRequestState, LabRunRequest};
use suimon_lab_run::folder::{REQUESTS_FOLDER, RunRequest};

use super::{Folder, Lab};
use crate::request_list::{is_open, list};
use crate::run_id::shown_id;
use crate::worker::{plans, worker};

/// Largest number of requests that are queued or in progress.
const WAITING_MAX: usize = 16;

impl Lab {
    /// Requests a run.
    ///
    /// # Errors
    /// No worker is running, the plan does not exist, this machine does not meet the plan's
    /// requirements, or too many requests are queued.
    pub fn request(
        &self,
        now_ms: u64,
        run_request: &LabRunRequest,
    ) -> Result<LabRequest, ApiError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let refuse = |code, text: String| Err(ApiError::new(code, text).about("lab"));
        let folder = Folder::open(&self.results)?;
        let worker =
            folder.as_ref().map(|lab_folder| worker(lab_folder, now_ms)).transpose()?.flatten();
        let (Some(folder), Some(worker)) = (folder, worker) else {
            return refuse(ErrorCode::Unsupported, self.remedy());
        };
        let plans = plans(&folder)?;
        let Some(plan) = plans.iter().find(|plan| plan.id == run_request.plan) else {
            let plan_ids: Vec<&str> = plans.iter().map(|plan| plan.id.as_str()).collect();
            let text = format!(
                "there is no plan `{}`; the plans are {}",
                shown_id(&run_request.plan),
                plan_ids.join(", ")
            );
            return Err(ApiError::new(ErrorCode::UnknownReference, text)
                .about("lab")
                .field("plan"));
        };
        let at_scale = plan.scales.iter().find(|scale| scale.scale == run_request.scale);
        let missing: Vec<&str> = at_scale
            .iter()
            .flat_map(|scale| &scale.missing)
            .map(|missing| missing.en.as_str())
            .collect();
        if !missing.is_empty() {
            let scale = run_request.scale.as_str();
            let text = format!(
                "this machine lacks resources for {} at scale `{scale}`: {}",
                plan.id,
                missing.join("; ")
            );
            return refuse(ErrorCode::Unsupported, text);
        }
        let Some(requests) = folder.folder(REQUESTS_FOLDER)? else {
            return refuse(ErrorCode::Unsupported, self.remedy());
        };
        let is_open = |lab_request: &LabRequest| is_open(lab_request.state);
        let open = list(&folder, Some(&worker))?.into_iter().filter(is_open).count();
        if open >= WAITING_MAX {
            let text = format!(
                "{open} runs are queued already; withdraw one, or wait until one has ended"
            );
            return refuse(ErrorCode::Conflict, text);
        }
        let request = RunRequest {
            plan: run_request.plan.clone(),
            scale: run_request.scale.as_str().to_owned(),
            profile: run_request.profile,
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
                    scale: Some(run_request.scale),
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
        let requests = list(&folder, worker.as_ref())?;
        let mut lab_request =
            requests.into_iter().find(|lab_request| lab_request.id == id).ok_or_else(lacking)?;
        let requests = folder.folder(REQUESTS_FOLDER)?.ok_or_else(lacking)?;
        if !is_open(lab_request.state) {
            return Ok(lab_request);
        }
        if worker.is_none() && !requests.is_held()? {
            // No worker reads the folder.
            requests.remove(&format!("{id}.json"))?;
            requests.remove(&format!("{id}.stop"))?;
            lab_request.state = LabRequestState::Failed;
            lab_request.error = Some("withdrawn before it started".to_owned());
            return Ok(lab_request);
        }
        requests.write_new(&format!("{id}.stop"), b"")?;
        lab_request.state = LabRequestState::Stopping;
        Ok(lab_request)
    }
}
