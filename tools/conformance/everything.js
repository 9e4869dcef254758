// An MCP server that knows nothing of OAuth, with the tools, resources and prompts that the scenarios call.
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { z } from 'zod';

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const sound = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
/** @type {(value: string) => any} */
const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: pixel, mimeType: 'image/png' };
const embed = (uri) => ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'An embedded resource.' } });

/**
 * Contents of the tools without arguments.
 *
 * @type {Readonly<Record<string, any>>}
 */
const tools = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_image_content: [image],
  test_audio_content: [{ type: 'audio', data: sound, mimeType: 'audio/wav' }],
  test_embedded_resource: [embed('test://embedded-resource')],
  test_multiple_content_types: [text('Multiple content types test:'), image, embed('test://mixed-content-resource')],
};
/** @type {(content: unknown) => any} */
const say = (content) => ({ messages: [{ role: 'user', content }] });

/** Creates the server of one request. */
export function createEverything() {
  const server = new McpServer(
    { name: 'everything', version: '1.0.0' },
    { capabilities: { logging: {}, completions: {}, resources: { subscribe: true } } },
  );
  for (const [name, content] of Object.entries(tools)) {
    server.registerTool(name, { description: name }, () => ({ content }));
  }
  server.registerTool('test_error_handling', { description: 'Fails.' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  server.registerTool(
    'test_tool_with_progress',
    { description: 'Reports progress.' },
    async (/** @type {any} */ { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        }
      }
      return { content: [text('Done.')] };
    },
  );
  server.registerResource('text', 'test://static-text', { mimeType: 'text/plain' }, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
  }));
  server.registerResource('binary', 'test://static-binary', { mimeType: 'image/png' }, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'image/png', blob: pixel }],
  }));
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { mimeType: 'application/json' },
    ({ href }, { id }) => ({
      contents: [{ uri: href, mimeType: 'application/json', text: JSON.stringify({ id, data: `Data for ID: ${id}` }) }],
    }),
  );
  server.registerPrompt('test_simple_prompt', { description: 'Simple.' }, () =>
    say(text('This is a simple prompt for testing.')),
  );
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'Arguments.', argsSchema: z.object({ arg1: z.string(), arg2: z.string() }) },
    ({ arg1, arg2 }) => say(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A resource.', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => say(embed(resourceUri)),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'An image.' }, () => say(image));
  return server;
}
