//! OpenAPI descriptions of endpoints common to several kinds of resource.

use axum::routing::MethodRouter;
use suimon_contract::{ErrorBody, Name, Observed, Operation, Plan, Resource, patch_schema_name};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{
    OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, Paths,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{Content, HttpMethod, Ref, RefOr, Required, Response, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::api::captures::CaptureParameters;
use crate::api::changes::ChangeParameters;
use crate::api::state::ApiState;

/// Description of one method of one path.
pub(super) struct EndpointDescription {
    operation: OperationBuilder,
    schemas: Vec<(String, RefOr<Schema>)>,
}

/// Returns the router of one path with descriptions of its methods.
pub(super) fn routes<const N: usize>(
    path: String,
    methods: [(HttpMethod, EndpointDescription); N],
    handlers: MethodRouter<ApiState>,
) -> UtoipaMethodRouter<ApiState> {
    let mut item = PathItem::default();
    let mut schemas = Vec::new();
    for (method, described) in methods {
        item.merge_operations(PathItem::new(method, described.operation));
        schemas.extend(described.schemas);
    }
    let mut paths = Paths::new();
    paths.paths.insert(path, item);
    (schemas, paths, handlers)
}

impl EndpointDescription {
    /// Returns the description of an endpoint of a kind of resource. Verb and kind form the
    /// operation id.
    pub(super) fn new<R: Resource>(verb: &str, summary: &str) -> Self {
        let operation = OperationBuilder::new()
            .tag(R::PATH)
            .summary(Some(summary))
            .operation_id(Some(format!("{verb}_{}", R::KIND.noun())));
        Self { operation, schemas: Vec::new() }
    }

    /// Sets a different operation id.
    pub(super) fn set_operation_id(&mut self, id: String) {
        let operation = std::mem::take(&mut self.operation);
        self.operation = operation.operation_id(Some(id));
    }

    /// Adds the path parameter with the resource's name.
    pub(super) fn with_name_parameter(self) -> Self {
        let name = ParameterBuilder::new()
            .name("name")
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some("Name of the object."))
            .schema(Some(reference::<Name>()));
        self.parameters([name.build()]).needs::<Name>()
    }

    /// Adds the response with the observed state of every resource.
    pub(super) fn with_list_response<R: Observed>(self) -> Self {
        let statuses = ArrayBuilder::new().items(reference::<R::Status>()).build();
        self.needs::<R::Status>().answers("200", "application/json", statuses)
    }

    /// Adds the response with the observed state of one resource.
    pub(super) fn with_status_response<R: Observed>(self) -> Self {
        self.answers_with::<R::Status>("200")
    }

    /// Adds parameters and responses of a change of desired state.
    pub(super) fn with_change_parameters(self) -> Self {
        self.parameters(ChangeParameters::into_params(|| None))
            .answers_with::<Plan>("200")
            .answers_with::<Operation>("202")
            .answers_with::<ErrorBody>("4XX")
    }

    /// Adds the request body with a whole resource.
    pub(super) fn with_body<R: Resource>(self) -> Self {
        self.needs::<R>().takes("application/json", reference::<R>())
    }

    /// Adds the request body with a JSON merge patch.
    pub(super) fn with_merge_patch_body<R: Resource>(self) -> Self {
        let patch = Ref::from_schema_name(patch_schema_name(R::KIND));
        self.takes("application/merge-patch+json", patch.into())
    }

    /// Adds the response with captured frames.
    pub(super) fn with_capture_response(self) -> Self {
        let bytes = Content::new(Some(Vec::<u8>::schema()));
        let operation = HeaderBuilder::new().schema(u64::schema()).build();
        let answer = Response::builder()
            .content("application/x-pcapng", bytes)
            .header("suimon-operation", operation);
        let mut described = self.parameters(CaptureParameters::into_params(|| None));
        described.operation = described.operation.response("200", answer.build());
        described.answers_with::<ErrorBody>("4XX")
    }

    fn parameters(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.operation = parameters.into_iter().fold(self.operation, OperationBuilder::parameter);
        self
    }

    fn takes(mut self, content_type: &str, schema: RefOr<Schema>) -> Self {
        let body = RequestBodyBuilder::new()
            .content(content_type, Content::new(Some(schema)))
            .required(Some(Required::True));
        self.operation = self.operation.request_body(Some(body.build()));
        self
    }

    fn answers_with<T: ToSchema>(self, status: &str) -> Self {
        self.needs::<T>().answers(status, "application/json", reference::<T>())
    }

    fn answers(
        mut self,
        status: &str,
        content_type: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        let answer = Response::builder().content(content_type, Content::new(Some(schema)));
        self.operation = self.operation.response(status, answer.build());
        self
    }

    /// Adds the schemas of this type and of the types it contains to the document.
    fn needs<T: ToSchema>(mut self) -> Self {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        self
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}
