import * as vendor from './vendor/htm-preact.ts';

export interface View {
  readonly type: unknown;
}

type Update<T> = (next: T | ((before: T) => T)) => void;

interface Library {
  html(parts: TemplateStringsArray, ...values: readonly unknown[]): View;
  render(view: View, parent: Element): void;
  useState<T>(initial: T | (() => T)): readonly [T, Update<T>];
  useEffect(effect: () => undefined | (() => void), inputs?: readonly unknown[]): void;
  useRef<T>(initial: T): { current: T };
  useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
}

export const { html, render, useState, useEffect, useRef, useMemo } = vendor as unknown as Library; // minified, without types
