/* The Python face of the loop: `Loop(listener, rules_path)`. See nd7tui/engine/sandbox/hotloop.py for what each method
 * takes and returns; this file only converts. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    struct loop loop;
    struct table *table;
    bool serving; /* another thread is inside `next` */
} LoopObject;

static int loop_object_init(PyObject *self_object, PyObject *args, PyObject *kwargs)
{
    LoopObject *self = (LoopObject *)self_object;
    int listener;
    const char *path;
    Py_ssize_t length;
    if (kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Loop takes no keyword arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "iz#:Loop", &listener, &path, &length))
        return -1;
    if (self->loop.own.listener) {
        PyErr_SetString(PyExc_RuntimeError, "Loop is initialised already");
        return -1;
    }
    char *copy = path ? strdup(path) : NULL;
    if (path && !copy) {
        PyErr_NoMemory();
        return -1;
    }
    if (!loop_init(&self->loop, listener, copy)) {
        PyErr_SetString(PyExc_OSError, "own rights cannot be read from /proc");
        return -1;
    }
    return 0;
}

static void loop_object_dealloc(PyObject *self_object)
{
    LoopObject *self = (LoopObject *)self_object;
    PyTypeObject *type = Py_TYPE(self_object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    table_free(self->table);
    free(self->loop.rules_path);
    release(self_object);
    Py_DECREF(type);
}

static PyObject *loop_object_next(PyObject *self_object, PyObject *args)
{
    LoopObject *self = (LoopObject *)self_object;
    int timeout_ms, wake;
    if (!PyArg_ParseTuple(args, "ii:next", &timeout_ms, &wake))
        return NULL;
    if (self->serving) {
        PyErr_SetString(PyExc_RuntimeError, "another thread serves this loop");
        return NULL;
    }
    struct caller caller;
    enum ending ending;
    self->serving = true;
    Py_BEGIN_ALLOW_THREADS
    ending = loop_next(&self->loop, timeout_ms, wake, &caller);
    Py_END_ALLOW_THREADS
    self->serving = false;
    if (ending == BROKEN)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (ending == NOTHING)
        Py_RETURN_NONE;
    const uint64_t *a = caller.args;
    return Py_BuildValue("(Kii(KKKKKK))", (unsigned long long)caller.id, (int)caller.tid, caller.nr,
                         (unsigned long long)a[0], (unsigned long long)a[1], (unsigned long long)a[2],
                         (unsigned long long)a[3], (unsigned long long)a[4], (unsigned long long)a[5]);
}

static bool read_root(PyObject *item, struct root *root, bool *granted)
{
    if (item == Py_None)
        return true;
    unsigned long long device, inode;
    int top_level;
    if (!PyArg_ParseTuple(item, "KKp;a root is (device, inode, top_level)", &device, &inode, &top_level))
        return false;
    *granted = true;
    root->device = (dev_t)device;
    root->inode = (ino_t)inode;
    root->top_level = top_level;
    return true;
}

static bool read_patterns(PyObject *list, struct entry *entry)
{
    Py_ssize_t count = PyTuple_Size(list);
    if (count < 0)
        return false;
    entry->patterns = calloc((size_t)count + 1, sizeof *entry->patterns);
    for (Py_ssize_t i = 0; entry->patterns && i < count; i++) {
        const char *text = PyBytes_AsString(PyTuple_GetItem(list, i));
        if (!text)
            return false;
        entry->patterns[i] = strdup(text);
        if (!entry->patterns[i])
            break;
        entry->pattern_count++;
    }
    if (entry->patterns && entry->pattern_count == (size_t)count)
        return true;
    PyErr_NoMemory();
    return false;
}

/* Reads (path, verdict, stricter_beneath, read_root, write_root, patterns). `verdict` is None or (read, write);
 * `stricter_beneath` is 1 for reading, 2 for writing, 3 for both. */
static bool read_entry(PyObject *item, struct entry *entry)
{
    const char *path;
    Py_ssize_t length;
    int stricter;
    PyObject *verdict, *roots[2], *patterns;
    if (!PyArg_ParseTuple(item, "y#OiOOO;an entry has six members", &path, &length, &verdict, &stricter, &roots[READ],
                          &roots[WRITE], &patterns))
        return false;
    entry->path = strdup(path);
    if (!entry->path) {
        PyErr_NoMemory();
        return false;
    }
    entry->length = (size_t)length;
    entry->stricter_beneath[READ] = stricter & 1;
    entry->stricter_beneath[WRITE] = stricter & 2;
    if (verdict != Py_None) {
        int read, write;
        if (!PyArg_ParseTuple(verdict, "pp;a verdict is (read, write)", &read, &write))
            return false;
        entry->has_verdict = true;
        entry->allowed[READ] = read;
        entry->allowed[WRITE] = write;
    }
    for (int access = READ; access <= WRITE; access++) {
        entry->root[access].path = entry->path;
        if (!read_root(roots[access], &entry->root[access], &entry->granted[access]))
            return false;
    }
    return read_patterns(patterns, entry);
}

static struct table *read_table(PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return NULL;
    struct entry *entries = calloc((size_t)count + 1, sizeof *entries);
    if (!entries) {
        PyErr_NoMemory();
        return NULL;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = read_entry(PyList_GetItem(list, i), &entries[i]);
    /* Entries that were not read are empty, and freeing those is harmless. */
    struct table *table = table_new(entries, (size_t)count);
    if (!table)
        PyErr_NoMemory();
    if (!good) {
        table_free(table);
        return NULL;
    }
    return table;
}

static PyObject *loop_object_use(PyObject *self_object, PyObject *args)
{
    LoopObject *self = (LoopObject *)self_object;
    PyObject *list;
    int strict;
    if (!PyArg_ParseTuple(args, "O!p:use", &PyList_Type, &list, &strict))
        return NULL;
    if (self->serving) {
        PyErr_SetString(PyExc_RuntimeError, "another thread serves this loop");
        return NULL;
    }
    struct table *table = read_table(list);
    if (!table)
        return NULL;
    table_free(self->table);
    self->table = table;
    self->loop.ground = (struct ground){.table = table, .strict = strict};
    Py_RETURN_NONE;
}

static PyObject *loop_object_find(PyObject *self_object, PyObject *args)
{
    LoopObject *self = (LoopObject *)self_object;
    const char *path;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "y#:find", &path, &length))
        return NULL;
    if (!self->table)
        Py_RETURN_NONE;
    struct found found = table_find(self->table, path, (size_t)length);
    if (found.unknown)
        Py_RETURN_NONE;
    return Py_BuildValue("(NNiNN)", PyBool_FromLong(found.allowed[READ]), PyBool_FromLong(found.allowed[WRITE]),
                         found.stricter_beneath[READ] | found.stricter_beneath[WRITE] << 1,
                         PyBool_FromLong(table_covers(&found, READ)), PyBool_FromLong(table_covers(&found, WRITE)));
}

static PyObject *loop_object_stats(PyObject *self_object, PyObject *unused)
{
    (void)unused;
    const struct loop *loop = &((LoopObject *)self_object)->loop;
    return Py_BuildValue("(KKN)", (unsigned long long)loop->continued, (unsigned long long)loop->answered,
                         PyBool_FromLong(loop->hung_up));
}

static PyMethodDef methods[] = {
    {"next", loop_object_next, METH_VARARGS, "next(timeout_ms, wake_fd) -> (id, tid, nr, args) or None"},
    {"use", loop_object_use, METH_VARARGS, "use(entries, strict): decide by these from now on"},
    {"find", loop_object_find, METH_VARARGS,
     "find(path) -> (read, write, stricter_beneath, read_covered, write_covered), None when it is for Python"},
    {"stats", loop_object_stats, METH_NOARGS, "stats() -> (continued, answered, hung_up)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Serves a seccomp listener without the interpreter lock."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, loop_object_init},
    {Py_tp_dealloc, loop_object_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "nd7tui.engine.sandbox._hotloop.Loop",
    .basicsize = sizeof(LoopObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static int module_exec(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    int result = type ? PyModule_AddObjectRef(module, "Loop", type) : -1;
    Py_XDECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_hotloop",
    .m_doc = "The compiled loop of the seccomp listener.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__hotloop(void)
{
    return PyModuleDef_Init(&definition);
}
