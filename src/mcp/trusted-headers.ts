import type { ResourceRequest } from '../http/request.ts';
import { Refused } from '../refused.ts';
import { carriesMessage, type ReadMessage } from './node-message.ts';
import { decodeHeaderName } from './operation-headers.ts';
import { findNamedMember, readHeaderOperations } from './operations.ts';

/** First revision of MCP whose servers compare the headers with the body. */
const firstRevision = '2026-07-28';
const revisionForm = /^\d{4}-\d{2}-\d{2}$/;
/** A proxy may join two header lines with a comma, which the method of a message does not contain. */
const methodForm = /^[\w$./-]+$/;

/** Reads the operations of a request from its headers, for an upstream that compares them with the body. */
export function readTrustedHeaders({ method, headers }: ResourceRequest): ReadMessage {
  const refuse = (reason: 'mcp_headers_missing' | 'mcp_header_mismatch'): ReadMessage => ({
    operations: new Refused(reason),
    id: null,
  });
  if (!carriesMessage(method)) return { operations: [], id: null };
  const revision = headers.get('mcp-protocol-version') ?? '';
  const called = headers.get('mcp-method') ?? '';
  if (!revisionForm.test(revision) || revision < firstRevision || !methodForm.test(called)) {
    return refuse('mcp_headers_missing');
  }
  if (findNamedMember(called) === undefined) return { operations: readHeaderOperations(called, null), id: null };
  const sent = headers.get('mcp-name') ?? '';
  if (sent === '' || sent.includes(',')) return refuse('mcp_headers_missing');
  const name = decodeHeaderName(sent);
  return name === undefined
    ? refuse('mcp_header_mismatch')
    : { operations: readHeaderOperations(called, name), id: null };
}
