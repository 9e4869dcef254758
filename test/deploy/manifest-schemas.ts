import * as v from 'valibot';

// Forms of the manifests, strict: a member that is not named here fails the test. Each follows the Kubernetes API
// reference v1.32 (kubernetes.io/docs/reference/generated/kubernetes-api/v1.32), and for ServiceMonitor the API reference
// of the Prometheus operator (prometheus-operator.dev/docs/api-reference/api), for the used members.

const name = v.pipe(v.string(), v.regex(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/), v.maxLength(63));
const labels = v.record(
  v.pipe(v.string(), v.regex(/^(?:[a-z0-9.-]+\/)?[\w.-]{1,63}$/)),
  v.pipe(v.string(), v.regex(/^[\w.-]{0,63}$/)),
);
const quantity = v.pipe(v.string(), v.regex(/^\d+(?:\.\d+)?(?:m|Ki|Mi|Gi)?$/));
const port = v.union([v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535)), name]);
const seconds = v.pipe(v.number(), v.integer(), v.minValue(1));
const metadata = v.strictObject({ name, labels: v.optional(labels) });
const selector = v.strictObject({ matchLabels: labels });

const probe = v.strictObject({
  httpGet: v.strictObject({ path: v.pipe(v.string(), v.startsWith('/')), port }),
  periodSeconds: v.optional(seconds),
  timeoutSeconds: v.optional(seconds),
  failureThreshold: v.optional(seconds),
});

const container = v.strictObject({
  name,
  image: v.string(),
  imagePullPolicy: v.picklist(['Always', 'IfNotPresent', 'Never']),
  env: v.optional(v.array(v.strictObject({ name: v.pipe(v.string(), v.regex(/^[A-Z_]+$/)), value: v.string() }))),
  args: v.optional(v.array(v.string())),
  envFrom: v.array(v.strictObject({ configMapRef: v.strictObject({ name }) })),
  ports: v.array(v.strictObject({ name, containerPort: port })),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  resources: v.strictObject({
    requests: v.strictObject({ cpu: quantity, memory: quantity }),
    limits: v.strictObject({ memory: quantity }),
  }),
  securityContext: v.strictObject({
    allowPrivilegeEscalation: v.literal(false),
    readOnlyRootFilesystem: v.literal(true),
    capabilities: v.strictObject({ drop: v.tuple([v.literal('ALL')]) }),
  }),
  volumeMounts: v.array(
    v.strictObject({ name, mountPath: v.pipe(v.string(), v.startsWith('/')), readOnly: v.optional(v.boolean()) }),
  ),
});

const volume = v.union([
  v.strictObject({ name, configMap: v.strictObject({ name }) }),
  v.strictObject({ name, emptyDir: v.strictObject({ sizeLimit: quantity }) }),
  v.strictObject({
    name,
    secret: v.strictObject({ secretName: name, defaultMode: v.pipe(v.number(), v.maxValue(0o777)) }),
  }),
]);

const deployment = v.strictObject({
  apiVersion: v.literal('apps/v1'),
  kind: v.literal('Deployment'),
  metadata,
  spec: v.strictObject({
    replicas: v.optional(seconds),
    selector,
    strategy: v.strictObject({ rollingUpdate: v.strictObject({ maxUnavailable: v.number(), maxSurge: v.number() }) }),
    template: v.strictObject({
      metadata: v.strictObject({ labels }),
      spec: v.strictObject({
        automountServiceAccountToken: v.literal(false),
        enableServiceLinks: v.boolean(),
        terminationGracePeriodSeconds: seconds,
        securityContext: v.strictObject({
          runAsNonRoot: v.literal(true),
          runAsUser: seconds,
          runAsGroup: seconds,
          fsGroup: seconds,
          seccompProfile: v.strictObject({ type: v.literal('RuntimeDefault') }),
        }),
        topologySpreadConstraints: v.array(
          v.strictObject({
            maxSkew: seconds,
            topologyKey: v.picklist(['kubernetes.io/hostname', 'topology.kubernetes.io/zone']),
            whenUnsatisfiable: v.picklist(['ScheduleAnyway', 'DoNotSchedule']),
            labelSelector: selector,
          }),
        ),
        containers: v.array(container),
        volumes: v.array(volume),
      }),
    }),
  }),
});

const rule = v.strictObject({
  ports: v.array(v.strictObject({ port, protocol: v.picklist(['TCP', 'UDP']) })),
  from: v.optional(v.array(v.strictObject({ namespaceSelector: selector }))),
});

/** One manifest. */
export const manifest = v.variant('kind', [
  deployment,
  v.strictObject({
    apiVersion: v.literal('v1'),
    kind: v.literal('ConfigMap'),
    metadata,
    data: v.record(v.string(), v.string()),
  }),
  v.strictObject({
    apiVersion: v.literal('v1'),
    kind: v.literal('Service'),
    metadata,
    spec: v.strictObject({ selector: labels, ports: v.array(v.strictObject({ name, port, targetPort: port })) }),
  }),
  v.strictObject({
    apiVersion: v.literal('policy/v1'),
    kind: v.literal('PodDisruptionBudget'),
    metadata,
    spec: v.strictObject({ minAvailable: seconds, selector }),
  }),
  v.strictObject({
    apiVersion: v.literal('autoscaling/v2'),
    kind: v.literal('HorizontalPodAutoscaler'),
    metadata,
    spec: v.strictObject({
      scaleTargetRef: v.strictObject({ apiVersion: v.literal('apps/v1'), kind: v.literal('Deployment'), name }),
      minReplicas: seconds,
      maxReplicas: seconds,
      metrics: v.array(
        v.strictObject({
          type: v.literal('Resource'),
          resource: v.strictObject({
            name: v.literal('cpu'),
            target: v.strictObject({ type: v.literal('Utilization'), averageUtilization: seconds }),
          }),
        }),
      ),
    }),
  }),
  v.strictObject({
    apiVersion: v.literal('networking.k8s.io/v1'),
    kind: v.literal('NetworkPolicy'),
    metadata,
    spec: v.strictObject({
      podSelector: selector,
      policyTypes: v.array(v.picklist(['Ingress', 'Egress'])),
      ingress: v.array(rule),
      egress: v.array(rule),
    }),
  }),
  v.strictObject({
    apiVersion: v.literal('monitoring.coreos.com/v1'),
    kind: v.literal('ServiceMonitor'),
    metadata,
    spec: v.strictObject({
      selector: v.strictObject({
        matchExpressions: v.array(
          v.strictObject({ key: v.string(), operator: v.picklist(['In', 'NotIn']), values: v.array(name) }),
        ),
      }),
      jobLabel: v.string(),
      endpoints: v.array(
        v.strictObject({ port: name, path: v.string(), interval: v.pipe(v.string(), v.regex(/^\d+s$/)) }),
      ),
    }),
  }),
  v.strictObject({
    apiVersion: v.literal('monitoring.coreos.com/v1'),
    kind: v.literal('PrometheusRule'),
    metadata,
    spec: v.strictObject({
      groups: v.array(
        v.strictObject({
          name,
          rules: v.array(
            v.strictObject({
              alert: v.string(),
              expr: v.string(),
              for: v.optional(v.pipe(v.string(), v.regex(/^\d+[smh]$/))),
              labels: v.record(v.string(), v.string()),
              annotations: v.record(v.string(), v.string()),
            }),
          ),
        }),
      ),
    }),
  }),
]);

/** A kustomization or a component, with the members that `render` knows. None is deprecated in kustomize 5. */
export const kustomization = v.strictObject({
  apiVersion: v.picklist(['kustomize.config.k8s.io/v1beta1', 'kustomize.config.k8s.io/v1alpha1']),
  kind: v.picklist(['Kustomization', 'Component']),
  nameSuffix: v.optional(v.string()),
  labels: v.optional(v.array(v.strictObject({ pairs: labels, includeSelectors: v.optional(v.boolean()) }))),
  resources: v.optional(v.array(v.string())),
  components: v.optional(v.array(v.string())),
  configMapGenerator: v.optional(
    v.array(
      v.strictObject({
        name,
        files: v.array(v.string()),
        options: v.strictObject({ disableNameSuffixHash: v.literal(true) }),
      }),
    ),
  ),
  patches: v.optional(v.array(v.strictObject({ path: v.string() }))),
});
