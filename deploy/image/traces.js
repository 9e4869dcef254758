// Loaded before the service (node --import): sends spans by OTLP over HTTP if OTEL_* sets an exporter of traces.
const { env } = process;
const exporter = env.OTEL_TRACES_EXPORTER ?? '';
const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
const isExpected = exporter === 'otlp' || (exporter === '' && endpoint !== undefined && endpoint !== '');

if (isExpected && env.OTEL_SDK_DISABLED?.toLowerCase() !== 'true') {
  const [{ OTLPTraceExporter }, { BatchSpanProcessor, NodeTracerProvider }, resources] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-proto'),
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/resources'),
  ]);
  const { detectResources, envDetector, resourceFromAttributes } = resources;
  new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'portcullis' }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  }).register();
}
