// Places the hooks of the plain patches by the meaning of the code instead of its lines, in changed copies of
// pjreddie's or AlexeyAB's Darknet (apply.sh --adapt). Networks are passed by pointer in pjreddie's and by
// value in AlexeyAB's. Each rule leaves a mark, AMP_HOOK_name(...), which pjreddie.sed or alexeyab.sed
// replaces by the hook's text.
//
// Functions are named in lists, because regular expressions of spatch differ between Debian 12 and Debian 13.

// ---- passes
@pass_by_pointer@
typedef network, network_state, layer, list, load_args, box_label, pthread_t, FILE;
identifier f = {forward_network, forward_network_gpu, backward_network, backward_network_gpu,
    update_network, update_network_gpu};
identifier N;
@@
 void f(network *N)
 {
+  AMP_HOOK_pass(f, N);
   ...
 }

@pass_by_value@
identifier f = {forward_network, forward_network_gpu, backward_network, backward_network_gpu};
symbol net, state;
@@
 void f(network net, network_state state)
 {
+  AMP_HOOK_state(f);
   ...
 }

@update_by_value@
identifier f = {update_network, update_network_gpu};
identifier N;
@@
 void f(network N)
 {
+  AMP_HOOK_update(N);
   ...
 }

// ---- making, resizing and freeing
@made_by_pointer@
identifier f = {parse_network_cfg, parse_network_cfg_custom}, i, L;
expression O;
identifier N;
@@
 f(...)
 {
  <...
  option_unused(O);
  ...
+ AMP_HOOK_made(N, &L);
  N->layers[i] = L;
  ...>
 }

@made_by_value@
identifier f = {parse_network_cfg, parse_network_cfg_custom}, i, L;
expression O;
identifier N;
@@
 f(...)
 {
  <...
  option_unused(O);
  ...
+ AMP_HOOK_made(&N, &L);
  N.layers[i] = L;
  ...>
 }

@all_made_by_pointer@
identifier f = {parse_network_cfg, parse_network_cfg_custom};
identifier N;
@@
 network *f(...)
 {
  ... when any
  network *N = make_network(...);
  <...
+ AMP_HOOK_made(N, 0);
  return N;
  ...>
 }

@all_made_by_value@
identifier f = {parse_network_cfg, parse_network_cfg_custom};
identifier N;
@@
 network f(...)
 {
  ... when any
  network N = make_network(...);
  <...
+ AMP_HOOK_made(&N, 0);
  return N;
  ...>
 }

@resized@
identifier N, L, i;
expression E;
@@
 int resize_network(network *N, ...)
 {
  <...
(
+ AMP_HOOK_made(N, &L);
  if (L.workspace_size > E) E = L.workspace_size;
|
+ AMP_HOOK_made(N, 0);
  return 0;
)
  ...>
 }

@free_by_pointer@
identifier N;
@@
 void free_network(network *N)
 {
+  AMP_HOOK_free(N);
   ...
 }

@free_by_value@
identifier N;
@@
 void free_network(network N)
 {
+  AMP_HOOK_free_value(N);
   ...
 }

@cfg@
expression name;
@@
 list *read_cfg(...)
 {
  <...
- fopen(name, "r")
+ DARKNET_OPEN_CFG(name)
  ...>
 }

// ---- weights
@load@
identifier fp, fn, N;
@@
 void load_weights_upto(network *N, char *fn, ...)
 {
  ...
+ AMP_HOOK_load(N, fn);
- FILE *fp = fopen(fn, "rb");
+ FILE *fp = AMP_HOOK_file(fn, "rb");
  ... when any
+ AMP_HOOK_loaded(N, fp);
  fclose(fp);
 }

@save@
identifier fp, fn, N;
type T;
@@
 void save_weights_upto(T N, char *fn, ...)
 {
  ...
+ AMP_HOOK_save(N, fn);
- FILE *fp = fopen(fn, "wb");
+ FILE *fp = AMP_HOOK_file(fn, "wb");
  ... when any
+ AMP_HOOK_saved(N, fp);
  fclose(fp);
 }

// ---- products, loading
@gemm@
identifier f = {gemm_cpu, gemm_gpu, gemm_ongpu};
identifier TA, TB, M, N, K, ALPHA, A, lda, B, ldb, BETA, C, ldc;
@@
 void f(int TA, int TB, int M, int N, int K, float ALPHA, float *A, int lda, float *B, int ldb, float BETA, float *C, int ldc)
 {
+  AMP_HOOK_gemm(f, TA, TB, M, N, K, ALPHA, A, lda, B, ldb, BETA, C, ldc);
   ...
 }

@job@
identifier P, a;
@@
 void *load_thread(void *P)
 {
  ...
  load_args a = ...;
+ AMP_HOOK_job(a);
  ...
 }

@read@
identifier name, n;
@@
 box_label *read_boxes(char *name, int *n)
 {
+  AMP_HOOK_read_boxes(name, n);
   ...
 }
